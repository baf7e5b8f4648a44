// The synchronization of the C++ standard library. Printed counts do not depend
// on the interleaving, and neither do the numbers of operations, but for those of
// wait_for and of what is atomic.
#include <condition_variable>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::mutex plain;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::once_flag flag;
static std::condition_variable turn;
static int next, sum, made;

static void in_order(int number)
{
	std::unique_lock<std::mutex> lock(plain);
	while (next != number) {
		turn.wait(lock);
	}
	next++;
	turn.notify_all();
}

static void work(int number)
{
	std::call_once(flag, [] {
		std::lock_guard<std::mutex> guard(plain);
		made++;
	});
	for (int i = 0; i < 10; i++) {
		std::lock_guard<std::recursive_mutex> a(recursive), b(recursive);
		std::unique_lock<std::shared_mutex> exclusive(shared);
		sum += number;
	}
	for (int i = 0; i < 10; i++) {
		std::shared_lock<std::shared_mutex> reader(shared);
	}
	if (timed.try_lock_for(std::chrono::seconds(1000)))
		timed.unlock();
	in_order(number);
	thread_local std::mutex own;
	std::lock_guard<std::mutex> guard(own);
}

int main()
{
	std::vector<std::thread> threads;
	std::mutex local, *heap = new std::mutex;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work, i);
	for (auto &t : threads)
		t.join();
	{
		std::scoped_lock both(local, *heap);
	}
	delete heap;
	printf("%d %d %d\n", next, sum, made);
}
