// EASY backfilling on rigid jobs and nothing else, as one would write it by hand: a heap of ends, a list that waits, the
// running jobs by the ends of their walltimes and, if asked for, intervals of free units of which a job gets the lowest.
//
//     easy_loop UNITS PLACING REPEAT < jobs
//
// reads the number of jobs, then their submit times, sizes, walltimes and run times (doubles, column by column, by
// submit time), simulates them REPEAT times, and writes the processor time of each (s) as text to standard error, and the
// starts of the jobs (doubles) to standard output.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

struct Interval {
    int low, high;
};

struct Planned {
    double end;
    int job, size;
};

struct Jobs {
    std::vector<double> submit, walltime, runtime;
    std::vector<int> size;
};

class Free {
  public:
    explicit Free(int units) : free_{{0, units - 1}} {}

    std::vector<Interval> take(int left) {
        std::vector<Interval> taken;
        std::size_t gone = 0;
        while (left > 0) {
            Interval &first = free_[gone];
            int width = first.high - first.low + 1;
            if (width > left) {
                taken.push_back({first.low, first.low + left - 1});
                first.low += left;
                break;
            }
            taken.push_back(first);
            left -= width;
            ++gone;
        }
        free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(gone));
        return taken;
    }

    void give_back(const std::vector<Interval> &units) {
        for (const Interval &one : units) {
            auto place = std::lower_bound(free_.begin(), free_.end(), one.low,
                                          [](const Interval &other, int low) { return other.low < low; });
            bool after = place != free_.end() && place->low == one.high + 1;
            bool before = place != free_.begin() && (place - 1)->high == one.low - 1;
            if (before && after) {
                (place - 1)->high = place->high;
                free_.erase(place);
            } else if (before) {
                (place - 1)->high = one.high;
            } else if (after) {
                place->low = one.low;
            } else {
                free_.insert(place, one);
            }
        }
    }

  private:
    std::vector<Interval> free_;
};

static std::vector<double> simulate(const Jobs &jobs, int units, bool placing) {
    const double inf = std::numeric_limits<double>::infinity();
    const int count = static_cast<int>(jobs.submit.size());
    std::vector<double> begun(jobs.submit.size(), 0.0);
    std::vector<std::vector<Interval>> held(jobs.submit.size());
    using End = std::pair<double, int>;
    std::priority_queue<End, std::vector<End>, std::greater<End>> ends;
    std::vector<Planned> planned;
    std::vector<int> waiting;
    Free places(units);
    int free = units, at = 0;
    double now = 0.0;

    auto before = [](const Planned &one, const Planned &other) {
        return one.end < other.end || (one.end == other.end && one.job < other.job);
    };
    auto start = [&](int job) {
        free -= jobs.size[job];
        if (placing) held[job] = places.take(jobs.size[job]);
        begun[job] = now;
        ends.push({now + std::min(jobs.runtime[job], jobs.walltime[job]), job});
        Planned plan{now + jobs.walltime[job], job, jobs.size[job]};
        planned.insert(std::lower_bound(planned.begin(), planned.end(), plan, before), plan);
    };

    while (at < count || !ends.empty()) {
        now = std::min(at < count ? jobs.submit[at] : inf, ends.empty() ? inf : ends.top().first);
        while (!ends.empty() && ends.top().first == now) {
            int job = ends.top().second;
            ends.pop();
            free += jobs.size[job];
            if (placing) {
                places.give_back(held[job]);
                std::vector<Interval>().swap(held[job]);
            }
            Planned plan{begun[job] + jobs.walltime[job], job, 0};
            planned.erase(std::lower_bound(planned.begin(), planned.end(), plan, before));
        }
        while (at < count && jobs.submit[at] == now) waiting.push_back(at++);
        std::size_t first = 0;
        while (first < waiting.size() && jobs.size[waiting[first]] <= free) start(waiting[first++]);
        waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(first));
        if (waiting.empty() || free == 0) continue;
        const int needed = jobs.size[waiting[0]];
        double shadow = inf;
        int left = free;
        for (const Planned &plan : planned) {
            if (plan.end > shadow) break;
            left += plan.size;
            if (left >= needed) shadow = plan.end;
        }
        int extra = std::max(left - needed, 0);
        std::size_t kept = 1;
        for (std::size_t place = 1; place < waiting.size(); ++place) {
            int job = waiting[place], size = jobs.size[job];
            bool late = now + jobs.walltime[job] > shadow;
            if (size <= free && (!late || size <= extra)) {
                if (late) extra -= size;
                start(job);
            } else {
                waiting[kept++] = job;
            }
        }
        waiting.resize(kept);
    }
    return begun;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const int units = std::atoi(argv[1]), repeat = std::atoi(argv[3]);
    const bool placing = std::atoi(argv[2]) != 0;
    double count = 0.0;
    if (std::fread(&count, sizeof count, 1, stdin) != 1) return 1;
    const std::size_t jobs_there = static_cast<std::size_t>(count);
    Jobs jobs;
    std::vector<double> size(jobs_there);
    for (std::vector<double> *column : {&jobs.submit, &size, &jobs.walltime, &jobs.runtime}) {
        column->resize(jobs_there);
        if (std::fread(column->data(), sizeof(double), jobs_there, stdin) != jobs_there) return 1;
    }
    jobs.size.assign(size.begin(), size.end());
    std::vector<double> begun;
    for (int turn = 0; turn < repeat; ++turn) {
        const std::clock_t began = std::clock();
        begun = simulate(jobs, units, placing);
        std::fprintf(stderr, "%.6f\n", static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    }
    std::fwrite(begun.data(), sizeof(double), begun.size(), stdout);
    return 0;
}
