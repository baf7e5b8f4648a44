// A reader tests a flag and then uses an object that the writer takes back.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
struct Slot {
	std::shared_ptr<std::string> text;
	std::atomic<bool> full{false};
	std::atomic<int> reads{0};
	void put(int n) {
		text = std::make_shared<std::string>("item " + std::to_string(n));
		full.store(true);
	}
	void drop() {
		full.store(false);
		text.reset();
	}
	void get() {
		if (!full.load()) return;
		reads.fetch_add(1);
		if (!text) throw std::runtime_error("the text is gone");
	}
};
int main() {
	Slot slot;
	std::thread writer([&] { for (int i = 0; i < 10; i++) { slot.put(i); slot.drop(); } });
	std::thread reader([&] { for (int i = 0; i < 10; i++) slot.get(); });
	writer.join();
	reader.join();
}
