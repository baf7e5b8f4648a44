// The program of TestAtomicTypes: a message that release and acquire order, and data that they do not.
#include <atomic>
#include <thread>
static long message;
static volatile long unordered;
static std::atomic<int> flag;
int main() {
	std::thread t([] {
		message = 42;
		flag.store(1, std::memory_order_release);
		unordered = unordered + 1;
	});
	while (!flag.load(std::memory_order_acquire)) ;
	long got = message;
	unordered = unordered + 1;
	t.join();
	return got != 42;
}
