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
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// -- the necessary part of JSON: texts and numbers are kept as JSON ---------------------------------------------------

struct Value {
    std::string raw;                                    // of a text or a number
    std::vector<Value> items;                           // of a list
    std::vector<std::pair<std::string, Value>> pairs;   // of an object

    const Value &operator[](const std::string &name) const {
        static const Value nothing;
        for (const auto &[key, value] : pairs)
            if (key == name) return value;
        return nothing;
    }
    std::string text() const { return raw.size() > 1 ? raw.substr(1, raw.size() - 2) : ""; }
    long number() const { return std::stol(raw); }
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

class Scheduler {
  public:
    // Processes the events up to `now` (simulated time, s) and returns the decisions as JSON.
    std::string decide(const std::string &now, const std::vector<Value> &events) {
        for (const Value &event : events) {
            const std::string type = event["type"].text();
            const Value &data = event["data"];
            if (type == "SIMULATION_BEGINS")
                free_ = {{0, data["nb_resources"].number() - 1}};
            else if (type == "JOB_SUBMITTED")
                queue_.push_back({data["job"]["id"].raw, data["job"]["res"].number()});
            else if (type == "JOB_COMPLETED")
                give_back(data["alloc"].text());
            else if (type == "DECISION_REJECTED") {  // a correct scheduler never gets this event
                std::cerr << data["message"].text() << '\n';
                std::exit(1);
            }
        }
        long count = 0;
        for (const auto &[first, last] : free_) count += last - first + 1;
        std::string decisions;
        while (!queue_.empty() && queue_.front().res <= count) {
            const Job job = queue_.front();
            queue_.pop_front();
            count -= job.res;
            decisions += (decisions.empty() ? "" : ",") + ("{\"timestamp\":" + now) +
                         ",\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":" + job.id + ",\"alloc\":\"" +
                         take_lowest(job.res) + "\"}}";
        }
        return decisions;
    }

  private:
    struct Job {
        std::string id;  // as JSON, with quotes
        long res;
    };

    // Takes the `count` lowest free units and returns them as text, such as "0-3 8".
    std::string take_lowest(long count) {
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
        return taken;
    }

    // Frees the units in a text such as "0-3 8".
    void give_back(const std::string &text) {
        std::istringstream pieces(text);
        for (std::string piece; pieces >> piece;) {
            const size_t dash = piece.find('-');
            const long first = std::stol(piece);
            free_.emplace_back(first, dash == std::string::npos ? first : std::stol(piece.substr(dash + 1)));
        }
        std::sort(free_.begin(), free_.end());
        std::deque<std::pair<long, long>> merged;
        for (const auto &part : free_) {
            if (!merged.empty() && merged.back().second + 1 == part.first)
                merged.back().second = part.second;
            else
                merged.push_back(part);
        }
        free_ = merged;
    }

    std::deque<Job> queue_;
    std::deque<std::pair<long, long>> free_;  // free units: intervals, ascending, never adjacent
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
    std::string answer = server.ask(R"({"type":"HELLO","data":{"name":"fcfs-cpp"}})");
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
        reply = "{\"reply_to\":" + notice["seq"].raw + ",\"now\":" + now + ",\"events\":[" + decisions + "]}";
    }
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
