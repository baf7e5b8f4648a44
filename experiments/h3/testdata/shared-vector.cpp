// Two threads append to one vector without a lock: one of them frees the memory that the other writes to.
#include <cstdlib>
#include <thread>
#include <vector>

static std::vector<int> numbers;

int main()
{
	auto append = [](int from) {
		for (int i = 0; i < 20; i++)
			numbers.push_back(from + i);
	};
	std::thread first(append, 0), second(append, 100);
	first.join();
	second.join();
	if (numbers.size() != 40)
		std::abort();
}
