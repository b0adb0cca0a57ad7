/*
 * spans.cc - tracing a C++ program: a span is an object, and ends with its block.
 *
 * spans [SECONDS]
 *
 * Three threads pass numbers on to each other; an arrow leads from where a number is
 * made to where it is used. Outside of this tree:
 * c++ spans.cc $(pkg-config --cflags --libs traceplane)
 */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <traceplane/traceplane.h>
#include <vector>

namespace
{

struct tp_client *client = &tp_client_off;
unsigned stage = TP_TYPE_NONE;
std::atomic<bool> is_ending{false};

class channel
{
  public:
    void put(uint64_t n)
    {
        {
            std::lock_guard<std::mutex> hold(lock_);
            queue_.push(n);
        }
        changed_.notify_one();
    }

    bool get(uint64_t &n)
    {
        std::unique_lock<std::mutex> hold(lock_);

        changed_.wait_for(hold, std::chrono::milliseconds(100),
                          [this] { return !queue_.empty(); });
        if (queue_.empty())
            return false;
        n = queue_.front();
        queue_.pop();
        return true;
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::queue<uint64_t> queue_;
};

void arrow(tp_phase phase, uint64_t id)
{
    tp_flow_point point = {};

    point.id = id;
    point.phase = phase;
    if (TP_IS_ON(client, stage))
        tp_flow(client, stage, TP_NAME("number"), &point);
}

void make(channel &out)
{
    for (uint64_t n = 1; !is_ending; n++) {
        traceplane::span s(client, stage, TP_NAME("make"));

        s.add(TP_INT("n", n));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        arrow(TP_PHASE_START, n);
        out.put(n);
    }
}

void use(channel &in, const std::string &who)
{
    uint64_t n;

    while (!is_ending) {
        if (!in.get(n))
            continue;
        traceplane::span s(client, stage, TP_NAME("use"));

        s.add(TP_COPY("who", who.c_str()));
        arrow(TP_PHASE_END, n);
        std::this_thread::sleep_for(std::chrono::milliseconds(n % 5));
    }
}

} // namespace

int main(int argc, char **argv)
{
    const long seconds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10;
    std::vector<std::thread> threads;
    channel numbers;
    tp_err err = {};

    if (tp_open(nullptr, &client, &err) != TP_OK ||
        tp_register_type(client, "spans", "STAGE", TP_KIND_SLICE, nullptr, &stage,
                         &err) != TP_OK)
        std::fprintf(stderr, "spans: not traceable: %s\n", err.message);
    threads.emplace_back(make, std::ref(numbers));
    threads.emplace_back(use, std::ref(numbers), "first");
    threads.emplace_back(use, std::ref(numbers), "second");
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    is_ending = true;
    for (std::thread &t : threads)
        t.join();
    tp_close(client);
    return 0;
}
