// A scheduler for Pipistrelle: first come, first served. It needs only C++17 and POSIX sockets.
//
//     g++ -std=c++17 -O2 -o ./scheduler scheduler.cpp
//     pipistrelle run --strict --scheduler ./scheduler {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// -- the necessary part of JSON: texts and numbers are kept as JSON ---------------------------------------------------

struct Value {
    std::string raw;                                    // of a text or number
    std::vector<Value> items;                           // of a list
    std::vector<std::pair<std::string, Value>> pairs;   // of an object

    const Value &operator[](const std::string &name) const {
        static const Value nothing;
        for (const auto &[key, value] : pairs)
            if (key == name) return value;
        return nothing;
    }
    std::string text() const { return raw.size() > 1 ? raw.substr(1, raw.size() - 2) : ""; }
    // Returns a number, or `other` if it is absent or null.
    long number(long other = 0) const { return raw.empty() || raw == "null" ? other : std::stol(raw); }
};

class Parser {
  public:
    explicit Parser(const std::string &text) : text_(text) {}

    Value value() {
        const char start = peek();
        const size_t from = at_++;
        Value found;
        if (start == '{') {
            while (more('}')) {
                const std::string key = value().text();
                peek();
                ++at_;  // the colon
                found.pairs.emplace_back(key, value());
            }
        } else if (start == '[') {
            while (more(']')) found.items.push_back(value());
        } else {
            if (start == '"') {
                while (text_.at(at_) != '"') at_ += text_[at_] == '\\' ? 2 : 1;
                ++at_;
            } else {
                while (at_ < text_.size() && !std::strchr(",]} \n", text_[at_])) ++at_;
            }
            found.raw = text_.substr(from, at_ - from);
        }
        return found;
    }

  private:
    // Returns the next character that is not blank, without consuming it.
    char peek() {
        while (std::isspace(static_cast<unsigned char>(text_.at(at_)))) ++at_;
        return text_[at_];
    }

    // Returns whether another item precedes `close`, and consumes the separator.
    bool more(char close) {
        if (peek() == ',') ++at_;
        if (peek() != close) return true;
        ++at_;
        return false;
    }

    const std::string &text_;
    size_t at_ = 0;
};

// -- the scheduler: change this part ----------------------------------------------------------------------------------

using Intervals = std::deque<std::pair<long, long>>;

// Returns the intervals (first, last) of a set of units: "0-3 8".
Intervals intervals(const std::string &text) {
    Intervals found;
    std::istringstream pieces(text);
    for (std::string piece; pieces >> piece;) {
        const size_t dash = piece.find('-');
        const long first = std::stol(piece);
        found.emplace_back(first, dash == std::string::npos ? first : std::stol(piece.substr(dash + 1)));
    }
    return found;
}

// What is free of a machine.
class Machine {
  public:
    virtual ~Machine() = default;
    // Takes what a job requests and returns the fields of its EXECUTE_JOB; "" if too little is free.
    virtual std::string place(const Value &job) = 0;
    // Frees what a job that has ended held.
    virtual void give_back(const Value &ended) = 0;
};

// A machine whose units jobs do not share: each job takes the lowest free ones.
class Units : public Machine {
  public:
    explicit Units(long count) : free_{{0, count - 1}} {}

    std::string place(const Value &job) override {
        long count = job["res"].number(), free = 0;
        for (const auto &[first, last] : free_) free += last - first + 1;
        if (count > free) return "";
        std::string taken;
        while (count > 0) {
            const auto [first, last] = free_.front();
            const long end = std::min(last, first + count - 1);
            taken += (taken.empty() ? "" : " ") + std::to_string(first);
            if (end > first) taken += "-" + std::to_string(end);
            count -= end - first + 1;
            if (end == last)
                free_.pop_front();
            else
                free_.front().first = end + 1;
        }
        return "\"alloc\":\"" + taken + "\"";
    }

    void give_back(const Value &ended) override {
        for (const auto &part : intervals(ended["alloc"].text())) free_.push_back(part);
        std::sort(free_.begin(), free_.end());
        Intervals merged;
        for (const auto &part : free_) {
            if (!merged.empty() && merged.back().second + 1 == part.first)
                merged.back().second = part.second;
            else
                merged.push_back(part);
        }
        free_ = merged;
    }

  private:
    Intervals free_;  // ascending, never adjacent
};

using Amounts = std::map<std::string, long>;  // of resources, in their base units

Amounts amounts_of(const Value &object) {
    Amounts found;
    for (const auto &[name, amount] : object.pairs) found[name] = amount.number();
    return found;
}

void add(Amounts &to, long sign, const Amounts &more) {
    for (const auto &[name, amount] : more) to[name] += sign * amount;
}

// What is free of a node.
struct Node {
    long number;
    std::string model;
    Amounts free;
    std::vector<long> gpus;  // thousandths of each
    long jobs;

    // Returns the numbers of the GPUs with the least free capacity that suffices.
    std::vector<size_t> fullest(long count, long share) const {
        std::vector<size_t> enough;
        for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
            if (gpus[gpu] >= share) enough.push_back(gpu);
        const auto fuller = [&](size_t one, size_t other) { return gpus[one] < gpus[other]; };
        std::stable_sort(enough.begin(), enough.end(), fuller);
        enough.resize(count);
        std::sort(enough.begin(), enough.end());
        return enough;
    }

    // Takes (-1) or frees (+1) amounts, and a share of each of some GPUs.
    void change(long sign, const Amounts &amounts, const std::vector<size_t> &numbers, long share) {
        jobs -= sign;
        add(free, sign, amounts);
        for (const size_t gpu : numbers) gpus[gpu] += sign * share;
    }
};

// A node, and how many tasks and GPUs of a job fit or are there.
struct Room {
    Node *node;
    long tasks, gpus;
};

// What a job requests; 'pipistrelle help protocol' explains the fields of a request.
struct Request {
    bool exclusive;
    long cores_per_task, memory_per_node, memory_per_task, memory_per_gpu, gpus, gpus_per_node, gpus_per_task, share;
    // The numbers of tasks and nodes of the whole job, and of tasks and GPUs on each node.
    long tasks, least_nodes, most_nodes, least_tasks, most_tasks, least_gpus;
    std::vector<Value> models;
    Amounts licenses, others;

    explicit Request(const Value &told)
        : exclusive(told["exclusive"].raw == "true"),
          cores_per_task(told["cores_per_task"].number(1000)),
          memory_per_node(told["memory_per_node"].number()),
          memory_per_task((told["memory_per_core"].number() * std::max(cores_per_task, 1L) + 999) / 1000),
          memory_per_gpu(told["memory_per_gpu"].number()),
          gpus(told["gpus"].number()),
          gpus_per_node(told["gpus_per_node"].number()),
          gpus_per_task(told["gpus_per_task"].number()),
          share(exclusive ? 1000 : told["gpu_share"].number(1000)),
          models(told["gpu_models"].items),
          licenses(amounts_of(told["licenses"])),
          others(amounts_of(told["others"])) {
        const long nodes = told["nodes"].number(1), given = told["tasks"].number();
        tasks = told["tasks"].number(nodes * told["tasks_per_node"].number(1));
        most_tasks = told["tasks_per_node"].number(given ? given : 1);
        least_nodes = std::max(nodes, (tasks + most_tasks - 1) / most_tasks);
        most_nodes = std::max(least_nodes, std::min(told["most_nodes"].number(told["nodes"].number(given)), given));
        least_tasks = std::max(1L, tasks - most_tasks * (most_nodes - 1));
        least_gpus = gpus ? std::max(1L, gpus / most_nodes) : 0;
    }

    // Returns the amounts that the job takes of a node with this number of its tasks and GPUs.
    Amounts taken(long node_tasks, long node_gpus) const {
        Amounts found = others;
        found["cores"] = node_tasks * cores_per_task;
        found["memory"] = memory_per_node + node_tasks * memory_per_task + node_gpus * memory_per_gpu;
        return found;
    }

    // Tells whether this number of tasks, and of GPUs of the job's total, fits on a node now.
    bool fits(const Node &node, long node_tasks, long node_gpus) const {
        node_gpus += gpus_per_node + gpus_per_task * node_tasks;
        for (const auto &[name, amount] : taken(node_tasks, node_gpus)) {
            const auto free = node.free.find(name);
            if (amount > (free == node.free.end() ? 0 : free->second)) return false;
        }
        return node_gpus <= std::count_if(node.gpus.begin(), node.gpus.end(), [&](long free) { return free >= share; });
    }

    // Returns how many tasks and GPUs of the job fit on a node now; no tasks if they are too few.
    Room room(Node &node) const {
        const auto is_model = [&](const Value &model) { return model.text() == node.model; };
        const bool right_model = models.empty() || std::any_of(models.begin(), models.end(), is_model);
        Room found{&node, least_tasks, least_gpus};
        if (!right_model || (exclusive && node.jobs) || !fits(node, least_tasks, least_gpus)) return {&node, 0, 0};
        while (found.gpus < gpus && fits(node, least_tasks, found.gpus + 1)) ++found.gpus;
        while (found.tasks < most_tasks && fits(node, found.tasks + 1, least_gpus)) ++found.tasks;
        return found;
    }

    // Returns the first nodes on which the job fits, each with its room there; none if it does not fit now.
    //
    // A job with a fixed number of nodes prefers those with room for an equal part of its tasks. If the first nodes do
    // not suffice, the job gets those with the most room.
    std::vector<Room> choose(std::vector<Node> &nodes) const {
        std::vector<Room> first, by_tasks;
        for (Node &node : nodes) {
            const Room found = room(node);
            if (!found.tasks) continue;
            by_tasks.push_back(found);
            if (least_nodes < most_nodes || found.tasks * least_nodes >= tasks) first.push_back(found);
        }
        std::vector<Room> by_gpus = by_tasks;
        const auto more_tasks = [](const Room &one, const Room &other) { return one.tasks > other.tasks; };
        const auto more_gpus = [](const Room &one, const Room &other) { return one.gpus > other.gpus; };
        std::stable_sort(by_tasks.begin(), by_tasks.end(), more_tasks);
        std::stable_sort(by_gpus.begin(), by_gpus.end(), more_gpus);
        for (auto *order : {&first, &by_tasks, &by_gpus}) {
            long count = 0, all_tasks = 0, all_gpus = 0;
            for (const Room &one : *order) {
                if (++count > most_nodes) break;
                all_tasks += one.tasks;
                all_gpus += one.gpus;
                if (count >= least_nodes && all_tasks >= tasks && all_gpus >= gpus)
                    return {order->begin(), order->begin() + count};
            }
        }
        return {};
    }

    // Orders the chosen nodes by number, and sets the job's tasks and GPUs on each: as many as fit, but some on all.
    void divide(std::vector<Room> &chosen) const {
        const auto lower = [](const Room &one, const Room &other) { return one.node->number < other.node->number; };
        std::sort(chosen.begin(), chosen.end(), lower);
        long later = static_cast<long>(chosen.size()), tasks_left = tasks, gpus_left = gpus;
        const long least = std::min(least_gpus, gpus / later);
        for (Room &part : chosen) {
            --later;  // nodes after this one
            tasks_left -= part.tasks = std::min(part.tasks, tasks_left - later);
            gpus_left -= part.gpus = std::min(part.gpus, gpus_left - later * least);
            part.gpus += gpus_per_node + gpus_per_task * part.tasks;
        }
    }
};

// A machine whose nodes jobs share: each job takes cores, memory and GPUs of the first nodes where it fits.
class Nodes : public Machine {
  public:
    explicit Nodes(const Value &platform) : licenses_(amounts_of(platform["licenses"])) {
        std::vector<Value> pools = platform["pools"].items;
        bool counts_memory = false;
        for (const Value &pool : pools) counts_memory |= !pool["resources"]["amounts"]["memory"].raw.empty();
        std::stable_sort(pools.begin(), pools.end(), [](const Value &one, const Value &other) {
            return one["weight"].number(1) < other["weight"].number(1);
        });
        for (const Value &pool : pools) {
            const Value &has = pool["resources"];
            Amounts free = amounts_of(has["amounts"]);
            if (!counts_memory) free["memory"] = 1L << 60;  // a machine that does not count memory has enough
            const std::vector<long> gpus(has["gpus"].number(), 1000);
            for (const auto &[first, last] : intervals(pool["nodes"].text()))
                for (long number = first; number <= last; ++number)
                    nodes_.push_back({number, has["gpu_model"].text(), free, gpus, 0});
        }
    }

    std::string place(const Value &job) override {
        const Request request(job["request"]);
        for (const auto &[name, count] : request.licenses)
            if (count > licenses_[name]) return "";
        std::vector<Room> chosen = request.choose(nodes_);
        if (chosen.empty()) return "";
        request.divide(chosen);
        add(licenses_, -1, request.licenses);
        Held &held = held_[job["id"].raw] = {request.licenses, request.share, {}};
        std::string alloc, takes;
        for (const auto &[node, tasks, gpus] : chosen) {
            const Amounts amounts = request.exclusive ? node->free : request.taken(tasks, gpus);
            const long count = request.exclusive ? static_cast<long>(node->gpus.size()) : gpus;
            const std::vector<size_t> numbers = node->fullest(count, request.share);
            node->change(-1, amounts, numbers, request.share);
            held.parts.push_back({node, amounts, numbers});
            const std::string number = std::to_string(node->number);
            std::string text;
            for (const size_t gpu : numbers) text += (text.empty() ? "" : " ") + std::to_string(gpu);
            alloc += (alloc.empty() ? "" : " ") + number;
            takes += (takes.empty() ? "{\"nodes\":\"" : ",{\"nodes\":\"") + number + "\",\"tasks\":" +
                     std::to_string(tasks) + ",\"gpus\":\"" + text + "\"}";
        }
        return "\"alloc\":\"" + alloc + "\",\"takes\":[" + takes + "]";
    }

    void give_back(const Value &ended) override {
        const auto found = held_.find(ended["job_id"].raw);
        const Held &held = found->second;
        add(licenses_, 1, held.licenses);
        for (const auto &[node, amounts, numbers] : held.parts) node->change(1, amounts, numbers, held.share);
        held_.erase(found);
    }

  private:
    struct Part {
        Node *node;
        Amounts amounts;
        std::vector<size_t> gpus;
    };
    struct Held {
        Amounts licenses;
        long share;
        std::vector<Part> parts;
    };

    Amounts licenses_;                  // free licences
    std::vector<Node> nodes_;           // by weight and number
    std::map<std::string, Held> held_;  // by the job's id
};

class Scheduler {
  public:
    // Processes the events up to `now` (simulated time, s) and returns the decisions as JSON.
    std::string decide(const std::string &now, const std::vector<Value> &events) {
        for (const Value &event : events) {
            const std::string type = event["type"].text();
            const Value &data = event["data"];
            if (type == "SIMULATION_BEGINS") {
                const std::vector<Value> &pools = data["platform"]["pools"].items;
                if (!pools.empty() && !pools[0]["resources"].pairs.empty())
                    machine_ = std::make_unique<Nodes>(data["platform"]);
                else
                    machine_ = std::make_unique<Units>(data["nb_resources"].number());
            } else if (type == "JOB_SUBMITTED")
                queue_.push_back(data["job"]);
            else if (type == "JOB_COMPLETED")
                machine_->give_back(data);
            else if (type == "DECISION_REJECTED") {  // a correct scheduler never gets this event
                std::cerr << data["message"].text() << '\n';
                std::exit(1);
            }
        }
        std::string decisions;
        while (!queue_.empty()) {
            const std::string start = machine_->place(queue_.front());
            if (start.empty()) break;
            const std::string id = queue_.front()["id"].raw;
            decisions += (decisions.empty() ? "" : ",") + ("{\"timestamp\":" + now) +
                         ",\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":" + id + "," + start + "}}";
            queue_.pop_front();
        }
        return decisions;
    }

    // Returns the events that need no notice now, as JSON; {} if any event may start a job.
    // A new job cannot pass a queued one, and an empty queue needs no free units.
    std::string wake_when() const {
        return queue_.empty() ? R"({"JOB_COMPLETED":[]})" : R"({"JOB_SUBMITTED":[]})";
    }

  private:
    std::deque<Value> queue_;  // queued jobs
    std::unique_ptr<Machine> machine_;
};

// -- the connection: a ZeroMQ REQ socket (ZMTP 3.0); no changes needed ------------------------------------------------

class Server {
  public:
    explicit Server(const std::string &endpoint) : socket_(connected(endpoint)) {
        if (socket_ < 0) throw std::runtime_error(endpoint + ": " + std::strerror(errno));
        std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL", 16);
        greeting.resize(64);
        const std::string ready("\x05READY\x0bSocket-Type\0\0\0\x03REQ", 25);
        write(greeting + '\4' + static_cast<char>(ready.size()) + ready);
        read(64);
        frame();  // the server's READY
    }
    ~Server() { close(socket_); }

    // Sends a message and returns the answer.
    std::string ask(const std::string &message) {
        std::string frames("\1\0\2", 3);  // an empty frame, then the length of the content
        for (int shift = 56; shift >= 0; shift -= 8)
            frames += static_cast<char>(static_cast<uint64_t>(message.size()) >> shift & 0xff);
        write(frames + message);
        for (;;) {
            const auto [flags, content] = frame();
            if (!(flags & 5)) return content;
        }
    }

  private:
    static int connected(const std::string &endpoint) {
        if (endpoint.rfind("ipc://", 0) == 0) {
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            std::strncpy(address.sun_path, endpoint.c_str() + 6, sizeof address.sun_path - 1);
            const int made = socket(AF_UNIX, SOCK_STREAM, 0);
            return connect(made, reinterpret_cast<sockaddr *>(&address), sizeof address) ? -1 : made;
        }
        const size_t colon = endpoint.rfind(':');
        const size_t begin = std::min(endpoint.find("//") + 2, colon);
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(endpoint.substr(begin, colon - begin).c_str(), endpoint.substr(colon + 1).c_str(), &hints, &found))
            return -1;
        const int made = socket(found->ai_family, SOCK_STREAM, 0), on = 1;
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const bool failed = connect(made, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
        return failed ? -1 : made;
    }

    void write(const std::string &content) {
        for (size_t done = 0; done < content.size();) {
            const ssize_t more = send(socket_, content.data() + done, content.size() - done, MSG_NOSIGNAL);
            if (more <= 0) throw std::runtime_error("the server has gone");
            done += static_cast<size_t>(more);
        }
    }

    std::string read(size_t size) {
        std::string content(size, '\0');
        for (size_t done = 0; done < size;) {
            const ssize_t more = recv(socket_, &content[done], size - done, 0);
            if (more <= 0) throw std::runtime_error("the server has gone");
            done += static_cast<size_t>(more);
        }
        return content;
    }

    std::pair<int, std::string> frame() {
        const int flags = read(1)[0];
        size_t size = 0;
        for (const unsigned char byte : read(flags & 2 ? 8 : 1)) size = size << 8 | byte;
        return {flags, read(size)};
    }

    int socket_;
};

int main(int count, char **words) try {
    const char *set = std::getenv("PIPISTRELLE_ENDPOINT");
    if (count < 2 && !set) throw std::runtime_error("usage: scheduler ENDPOINT");
    Server server(count > 1 ? words[1] : set);
    std::string answer = server.ask(R"({"type":"HELLO","data":{"name":"fcfs-cpp","features":["resources","wake_when"]}})");
    const Value welcome = Parser(answer).value();
    if (welcome["type"].text() != "WELCOME") throw std::runtime_error(welcome["data"]["message"].text());
    Scheduler scheduler;
    std::string reply = R"({"reply_to":0,"now":0,"events":[]})";
    for (;;) {
        answer = server.ask(reply);
        const Value notice = Parser(answer).value();
        const std::string now = notice["now"].raw;
        const std::vector<Value> &events = notice["events"].items;
        const std::string decisions = scheduler.decide(now, events);
        if (events.back()["type"].text() == "SIMULATION_ENDS") return 0;
        reply = "{\"reply_to\":" + notice["seq"].raw + ",\"now\":" + now + ",\"events\":[" + decisions +
                "],\"wake_when\":" + scheduler.wake_when() + "}";
    }
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
