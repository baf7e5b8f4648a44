// Reads a number of rounds from standard input, or from an argument by a stream or by std::stoi; two threads take a
// lock once in each round.
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

static std::mutex mutex;

static void work(int rounds) {
  for (int i = 0; i < rounds / 2; i++) std::lock_guard<std::mutex> lock(mutex);
}

int main(int argc, char *argv[]) {
  int rounds = 0;
  if (argc < 2) std::cin >> rounds;
  else if (argv[1][0] == '+') rounds = std::stoi(argv[1]);
  else std::istringstream(argv[1]) >> rounds;
  std::thread thread(work, rounds);
  work(rounds);
  thread.join();
  std::cout << "done\n";
}
