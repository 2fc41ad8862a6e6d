// A scheduler for Pipistrelle: first come, first served. It needs only the standard library, of Rust 1.63 or later.
//
//     rustc -O -o ./scheduler scheduler.rs
//     pipistrelle run --strict --scheduler ./scheduler {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

// -- the scheduler: change this part ----------------------------------------------------------------------------------

/// A queued job; its id is kept as JSON, with quotes.
struct Job {
    id: String,
    res: u64,
}

#[derive(Default)]
struct Scheduler {
    queue: VecDeque<Job>,
    /// free units: intervals (first, last), ascending, never adjacent
    free: VecDeque<(u64, u64)>,
}

impl Scheduler {
    /// Takes the `count` lowest free units and returns them as text, such as "0-3 8".
    fn take_lowest(&mut self, mut count: u64) -> String {
        let mut taken = Vec::new();
        while count > 0 {
            let (first, last) = self.free.pop_front().expect("there are as many free units");
            let end = last.min(first + count - 1);
            taken.push(if end > first { format!("{first}-{end}") } else { first.to_string() });
            count -= end - first + 1;
            if end < last {
                self.free.push_front((end + 1, last));
            }
        }
        taken.join(" ")
    }

    /// Frees the units in a text such as "0-3 8".
    fn give_back(&mut self, text: &str) {
        for piece in text.split_whitespace() {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            self.free.push_back((first.parse().expect("a unit"), last.parse().expect("a unit")));
        }
        self.free.make_contiguous().sort_unstable();
        let mut merged: VecDeque<(u64, u64)> = VecDeque::new();
        for &(first, last) in &self.free {
            match merged.back_mut() {
                Some(before) if before.1 + 1 == first => before.1 = last,
                _ => merged.push_back((first, last)),
            }
        }
        self.free = merged;
    }

    /// Processes the events up to `now` (simulated time, s) and returns the decisions as JSON.
    fn decide(&mut self, now: &str, events: &[Value]) -> String {
        for event in events {
            let data = event.get("data");
            match event.get("type").text() {
                "SIMULATION_BEGINS" => self.free = [(0, data.get("nb_resources").number() - 1)].into(),
                "JOB_SUBMITTED" => {
                    let job = data.get("job");
                    self.queue.push_back(Job { id: job.get("id").raw().into(), res: job.get("res").number() });
                }
                "JOB_COMPLETED" => self.give_back(data.get("alloc").text()),
                "DECISION_REJECTED" => {
                    eprintln!("{}", data.get("message").text()); // a correct scheduler never gets this event
                    std::process::exit(1)
                }
                _ => {}
            }
        }
        let mut decisions = Vec::new();
        let mut count: u64 = self.free.iter().map(|(first, last)| last - first + 1).sum();
        while self.queue.front().map_or(false, |job| job.res <= count) {
            let job = self.queue.pop_front().expect("there is one");
            count -= job.res;
            let (id, alloc) = (job.id, self.take_lowest(job.res));
            decisions.push(format!(
                r#"{{"timestamp":{now},"type":"EXECUTE_JOB","data":{{"job_id":{id},"alloc":"{alloc}"}}}}"#
            ));
        }
        decisions.join(",")
    }
}

// -- the necessary part of JSON: texts and numbers are kept as JSON ---------------------------------------------------

enum Value {
    Scalar(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

static NOTHING: Value = Value::Scalar(String::new());

impl Value {
    fn get(&self, name: &str) -> &Value {
        match self {
            Value::Map(pairs) => pairs.iter().find(|(key, _)| key == name).map_or(&NOTHING, |(_, value)| value),
            _ => &NOTHING,
        }
    }

    fn items(&self) -> &[Value] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }

    fn raw(&self) -> &str {
        match self {
            Value::Scalar(text) => text,
            _ => "",
        }
    }

    fn text(&self) -> &str {
        self.raw().trim_matches('"')
    }

    fn number(&self) -> u64 {
        self.raw().parse().expect("a whole number")
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// Returns the next byte that is not blank, without consuming it.
    fn peek(&mut self) -> u8 {
        while self.text[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        self.text[self.at]
    }

    /// Returns whether another item precedes `close`, and consumes the separator.
    fn more(&mut self, close: u8) -> bool {
        if self.peek() == b',' {
            self.at += 1;
        }
        if self.peek() != close {
            return true;
        }
        self.at += 1;
        false
    }

    fn value(&mut self) -> Value {
        let start = self.peek();
        let from = self.at;
        self.at += 1;
        match start {
            b'{' => {
                let mut pairs = Vec::new();
                while self.more(b'}') {
                    let key = self.value().text().to_string();
                    self.peek();
                    self.at += 1; // the colon
                    pairs.push((key, self.value()));
                }
                return Value::Map(pairs);
            }
            b'[' => {
                let mut items = Vec::new();
                while self.more(b']') {
                    items.push(self.value());
                }
                return Value::List(items);
            }
            b'"' => {
                while self.text[self.at] != b'"' {
                    self.at += if self.text[self.at] == b'\\' { 2 } else { 1 };
                }
                self.at += 1;
            }
            _ => {
                while self.at < self.text.len() && !b",]} \n".contains(&self.text[self.at]) {
                    self.at += 1;
                }
            }
        }
        Value::Scalar(String::from_utf8_lossy(&self.text[from..self.at]).into_owned())
    }
}

// -- the connection: a ZeroMQ REQ socket (ZMTP 3.0); no changes needed ------------------------------------------------

trait Socket: Read + Write {}
impl<T: Read + Write> Socket for T {}

struct Server {
    socket: Box<dyn Socket>,
}

impl Server {
    fn connect(endpoint: &str) -> std::io::Result<Server> {
        let socket: Box<dyn Socket> = match endpoint.strip_prefix("ipc://") {
            Some(path) => Box::new(UnixStream::connect(path)?),
            None => {
                let stream = TcpStream::connect(endpoint.trim_start_matches("tcp://"))?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        };
        let mut server = Server { socket };
        let mut greeting = [0u8; 64];
        greeting[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL");
        let ready = b"\x05READY\x0bSocket-Type\0\0\0\x03REQ";
        server.socket.write_all(&greeting)?;
        server.socket.write_all(&[&[4, ready.len() as u8], &ready[..]].concat())?;
        server.read(64)?;
        server.frame()?; // the server's READY
        Ok(server)
    }

    fn read(&mut self, size: usize) -> std::io::Result<Vec<u8>> {
        let mut content = vec![0; size];
        self.socket.read_exact(&mut content)?;
        Ok(content)
    }

    fn frame(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        let flags = self.read(1)?[0];
        let size = self.read(if flags & 2 > 0 { 8 } else { 1 })?;
        let size = size.iter().fold(0usize, |sum, &byte| sum << 8 | byte as usize);
        Ok((flags, self.read(size)?))
    }

    /// Sends a message and returns the answer.
    fn ask(&mut self, message: &str) -> std::io::Result<Value> {
        let size = (message.len() as u64).to_be_bytes();
        // An empty frame, then the length of the content.
        self.socket.write_all(&[&[1, 0, 2], &size[..], message.as_bytes()].concat())?;
        loop {
            let (flags, content) = self.frame()?;
            if flags & 5 == 0 {
                return Ok(Parser { text: &content, at: 0 }.value());
            }
        }
    }
}

fn main() -> std::io::Result<()> {
    let endpoint = std::env::args().nth(1).or_else(|| std::env::var("PIPISTRELLE_ENDPOINT").ok());
    let endpoint = endpoint.expect("usage: scheduler ENDPOINT");
    let mut server = Server::connect(&endpoint)?;
    let welcome = server.ask(r#"{"type":"HELLO","data":{"name":"fcfs-rust"}}"#)?;
    if welcome.get("type").text() != "WELCOME" {
        eprintln!("{}", welcome.get("data").get("message").text());
        std::process::exit(1);
    }
    let mut scheduler = Scheduler::default();
    let mut reply = String::from(r#"{"reply_to":0,"now":0,"events":[]}"#);
    loop {
        let notice = server.ask(&reply)?;
        let (now, events) = (notice.get("now").raw(), notice.get("events").items());
        let decisions = scheduler.decide(now, events);
        if events.last().map_or(false, |event| event.get("type").text() == "SIMULATION_ENDS") {
            return Ok(());
        }
        reply = format!(r#"{{"reply_to":{},"now":{now},"events":[{decisions}]}}"#, notice.get("seq").raw());
    }
}
