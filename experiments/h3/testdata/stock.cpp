// Buyers take more than there is: they see the stock and take from it under two holds of the lock.
// With an argument a buyer that finds nothing throws what no one catches.
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Offer {
	std::string name;
	int left;
};

static std::mutex lock;
static std::condition_variable opened;
static bool open_;
static std::shared_ptr<Offer> offer;
static int sold;
static std::atomic<int> refused{0};
static bool strict;

static bool available()
{
	std::lock_guard<std::mutex> hold(lock);
	return offer->left > 0;
}

static void take()
{
	std::lock_guard<std::mutex> hold(lock);
	auto seen = offer;
	if (seen->left == 0)
		throw std::out_of_range("nothing is left of " + seen->name);
	seen->left--;
	sold++;
}

static void buy(int times)
{
	std::unique_lock<std::mutex> hold(lock);
	opened.wait(hold, [] { return open_; });
	hold.unlock();
	for (int i = 0; i < times; i++) {
		if (!available())
			continue;
		if (strict) {
			take();
			continue;
		}
		try {
			take();
		} catch (const std::exception &e) {
			refused += e.what() != nullptr;
		}
	}
}

int main(int argc, char **argv)
{
	strict = argc > 1;
	std::vector<std::thread> buyers;
	for (int i = 0; i < 2; i++)
		buyers.emplace_back(buy, 4);
	{
		std::lock_guard<std::mutex> hold(lock);
		offer = std::make_shared<Offer>();
		offer->name = "offer number " + std::to_string(argc);
		offer->left = 5;
		open_ = true;
	}
	opened.notify_all();
	for (auto &b : buyers)
		b.join();
	std::cout << sold << " items, refused " << refused << std::endl;
	assert(refused == 0);
}
