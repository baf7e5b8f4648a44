// Threads that share an object by std::shared_ptr: the last one ends it.
#include <memory>
#include <thread>
#include <vector>

struct Object {
	int value = 3;
	~Object() { value = -1; }
};

int unordered; // each thread writes it, and nothing orders them

int main()
{
	auto object = std::make_shared<Object>();
	std::vector<std::thread> threads;
	for (int i = 0; i < 3; i++)
		threads.emplace_back([pointer = object, i]() mutable {
			volatile int seen = pointer->value;
			unordered = i + seen;
			pointer.reset();
		});
	object.reset();
	for (auto &thread : threads)
		thread.join();
}
