// A scheduler for Pipistrelle: first come, first served. It needs only the standard library, of Rust 1.63 or later.
//
//     rustc -O -o ./scheduler scheduler.rs
//     pipistrelle run --strict --scheduler ./scheduler {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

// -- the scheduler: change this part ----------------------------------------------------------------------------------

struct Scheduler {
    /// queued jobs, as JSON
    queue: VecDeque<Value>,
    machine: Box<dyn Machine>,
}

/// What is free of a machine.
trait Machine {
    /// Takes what a job requests and returns the fields of its EXECUTE_JOB; `None` if too little is free.
    fn place(&mut self, job: &Value) -> Option<String>;
    /// Frees what a job that has ended held.
    fn give_back(&mut self, ended: &Value);
}

impl Scheduler {
    /// Processes the events up to `now` (simulated time, s) and returns the decisions as JSON.
    fn decide(&mut self, now: &str, events: &[Value]) -> String {
        for event in events {
            let data = event.get("data");
            match event.get("type").text() {
                "SIMULATION_BEGINS" => {
                    let platform = data.get("platform");
                    self.machine = match platform.get("pools").items().first().map(|pool| pool.get("resources")) {
                        Some(Value::Map(_)) => Box::new(Nodes::new(platform)),
                        _ => Box::new(Units { free: [(0, data.get("nb_resources").number(0) - 1)].into() }),
                    }
                }
                "JOB_SUBMITTED" => self.queue.push_back(data.get("job").clone()),
                "JOB_COMPLETED" => self.machine.give_back(data),
                "DECISION_REJECTED" => {
                    eprintln!("{}", data.get("message").text()); // a correct scheduler never gets this event
                    std::process::exit(1)
                }
                _ => {}
            }
        }
        let mut decisions = Vec::new();
        while let Some(job) = self.queue.front() {
            let start = match self.machine.place(job) {
                Some(start) => start,
                None => break,
            };
            let id = job.get("id").raw();
            decisions.push(format!(r#"{{"timestamp":{now},"type":"EXECUTE_JOB","data":{{"job_id":{id},{start}}}}}"#));
            self.queue.pop_front();
        }
        decisions.join(",")
    }

    /// Returns the events that need no notice now, as JSON; `{}` if any event may start a job.
    ///
    /// A new job cannot pass a queued one, and an empty queue needs no free units.
    fn wake_when(&self) -> &'static str {
        if self.queue.is_empty() {
            r#"{"JOB_COMPLETED":[]}"#
        } else {
            r#"{"JOB_SUBMITTED":[]}"#
        }
    }
}

/// A machine whose units jobs do not share: each job takes the lowest free ones.
#[derive(Default)]
struct Units {
    /// intervals (first, last), ascending, never adjacent
    free: VecDeque<(i64, i64)>,
}

impl Machine for Units {
    fn place(&mut self, job: &Value) -> Option<String> {
        let mut count = job.get("res").number(1);
        if count > self.free.iter().map(|(first, last)| last - first + 1).sum() {
            return None;
        }
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
        Some(format!(r#""alloc":"{}""#, taken.join(" ")))
    }

    fn give_back(&mut self, ended: &Value) {
        self.free.extend(intervals(ended.get("alloc").text()));
        self.free.make_contiguous().sort_unstable();
        let mut merged: VecDeque<(i64, i64)> = VecDeque::new();
        for &(first, last) in &self.free {
            match merged.back_mut() {
                Some(before) if before.1 + 1 == first => before.1 = last,
                _ => merged.push_back((first, last)),
            }
        }
        self.free = merged;
    }
}

/// Amounts of resources, in their base units.
type Amounts = BTreeMap<String, i64>;

fn add(to: &mut Amounts, sign: i64, more: &Amounts) {
    for (name, amount) in more {
        *to.entry(name.clone()).or_insert(0) += sign * amount;
    }
}

/// A machine whose nodes jobs share: each job takes cores, memory and GPUs of the first nodes where it fits.
struct Nodes {
    /// licences that are free
    licenses: Amounts,
    /// by weight and number
    nodes: Vec<Node>,
    /// for each job: its request, and the index of each of its nodes, with the amounts and the GPUs that it holds there
    held: BTreeMap<String, (Request, Vec<(usize, Amounts, Vec<usize>)>)>,
}

impl Nodes {
    fn new(platform: &Value) -> Nodes {
        let mut pools: Vec<&Value> = platform.get("pools").items().iter().collect();
        let counts_memory =
            pools.iter().any(|pool| !pool.get("resources").get("amounts").get("memory").raw().is_empty());
        pools.sort_by_key(|pool| pool.get("weight").number(1));
        let mut nodes = Vec::new();
        for pool in pools {
            let has = pool.get("resources");
            let mut free = has.get("amounts").amounts();
            if !counts_memory {
                free.insert("memory".into(), 1 << 60); // a machine that does not count memory has enough
            }
            let (model, gpus) = (has.get("gpu_model").text(), vec![1000; has.get("gpus").number(0) as usize]);
            for number in intervals(pool.get("nodes").text()).into_iter().flat_map(|(first, last)| first..=last) {
                nodes.push(Node { number, model: model.into(), free: free.clone(), gpus: gpus.clone(), jobs: 0 });
            }
        }
        Nodes { licenses: platform.get("licenses").amounts(), nodes, held: BTreeMap::new() }
    }
}

impl Machine for Nodes {
    fn place(&mut self, job: &Value) -> Option<String> {
        let request = Request::new(job.get("request"));
        if request.licenses.iter().any(|(name, count)| *count > self.licenses[name]) {
            return None;
        }
        let chosen = request.choose(&self.nodes)?;
        add(&mut self.licenses, -1, &request.licenses);
        let (mut alloc, mut takes, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for Room { index, tasks, gpus } in request.divide(&self.nodes, chosen) {
            let node = &mut self.nodes[index];
            let (amounts, numbers) = if request.exclusive {
                (node.free.clone(), (0..node.gpus.len()).collect())
            } else {
                (request.taken(tasks, gpus), node.fullest(gpus, request.share))
            };
            node.change(-1, &amounts, &numbers, request.share);
            let text: Vec<String> = numbers.iter().map(usize::to_string).collect();
            let (number, text) = (node.number, text.join(" "));
            alloc.push(number.to_string());
            takes.push(format!(r#"{{"nodes":"{number}","tasks":{tasks},"gpus":"{text}"}}"#));
            held.push((index, amounts, numbers));
        }
        self.held.insert(job.get("id").raw().into(), (request, held));
        Some(format!(r#""alloc":"{}","takes":[{}]"#, alloc.join(" "), takes.join(",")))
    }

    fn give_back(&mut self, ended: &Value) {
        let (request, held) = self.held.remove(ended.get("job_id").raw()).expect("the job runs");
        add(&mut self.licenses, 1, &request.licenses);
        for (index, amounts, numbers) in held {
            self.nodes[index].change(1, &amounts, &numbers, request.share);
        }
    }
}

/// What is free of a node.
struct Node {
    number: i64,
    model: String,
    free: Amounts,
    /// thousandths of each GPU
    gpus: Vec<i64>,
    jobs: i64,
}

impl Node {
    /// Returns the numbers of the GPUs with the least free capacity that suffices.
    fn fullest(&self, count: i64, share: i64) -> Vec<usize> {
        let mut enough: Vec<usize> = (0..self.gpus.len()).filter(|&gpu| self.gpus[gpu] >= share).collect();
        enough.sort_by_key(|&gpu| self.gpus[gpu]);
        enough.truncate(count as usize);
        enough.sort_unstable();
        enough
    }

    /// Takes (-1) or frees (+1) amounts, and a share of each of some GPUs.
    fn change(&mut self, sign: i64, amounts: &Amounts, gpus: &[usize], share: i64) {
        self.jobs -= sign;
        add(&mut self.free, sign, amounts);
        for &gpu in gpus {
            self.gpus[gpu] += sign * share;
        }
    }
}

/// The index of a node, and how many tasks and GPUs of a job fit or are there.
#[derive(Clone, Copy)]
struct Room {
    index: usize,
    tasks: i64,
    gpus: i64,
}

/// What a job requests; 'pipistrelle help protocol' explains the fields of a request.
struct Request {
    exclusive: bool,
    cores_per_task: i64,
    memory_per_node: i64,
    memory_per_task: i64,
    memory_per_gpu: i64,
    gpus: i64,
    gpus_per_node: i64,
    gpus_per_task: i64,
    share: i64,
    models: Vec<String>,
    licenses: Amounts,
    others: Amounts,
    // The numbers of tasks and nodes of the whole job, and of tasks and GPUs on each node.
    tasks: i64,
    least_nodes: i64,
    most_nodes: i64,
    least_tasks: i64,
    most_tasks: i64,
    least_gpus: i64,
}

impl Request {
    fn new(told: &Value) -> Request {
        let number = |name, other| told.get(name).number(other);
        let exclusive = told.get("exclusive").raw() == "true";
        let cores_per_task = number("cores_per_task", 1000);
        let (nodes, given, gpus) = (number("nodes", 1), number("tasks", 0), number("gpus", 0));
        let tasks = number("tasks", nodes * number("tasks_per_node", 1));
        let most_tasks = number("tasks_per_node", given.max(1));
        let least_nodes = nodes.max((tasks + most_tasks - 1) / most_tasks);
        let most_nodes = least_nodes.max(given.min(number("most_nodes", number("nodes", given))));
        Request {
            exclusive,
            cores_per_task,
            memory_per_node: number("memory_per_node", 0),
            memory_per_task: (number("memory_per_core", 0) * cores_per_task.max(1) + 999) / 1000,
            memory_per_gpu: number("memory_per_gpu", 0),
            gpus,
            gpus_per_node: number("gpus_per_node", 0),
            gpus_per_task: number("gpus_per_task", 0),
            share: if exclusive { 1000 } else { number("gpu_share", 1000) },
            models: told.get("gpu_models").items().iter().map(|model| model.text().into()).collect(),
            licenses: told.get("licenses").amounts(),
            others: told.get("others").amounts(),
            tasks,
            least_nodes,
            most_nodes,
            least_tasks: 1.max(tasks - most_tasks * (most_nodes - 1)),
            most_tasks,
            least_gpus: gpus.min(1.max(gpus / most_nodes)),
        }
    }

    /// Returns the amounts that the job takes of a node with this number of its tasks and GPUs.
    fn taken(&self, tasks: i64, gpus: i64) -> Amounts {
        let memory = self.memory_per_node + tasks * self.memory_per_task + gpus * self.memory_per_gpu;
        let mut amounts = self.others.clone();
        amounts.insert("cores".into(), tasks * self.cores_per_task);
        amounts.insert("memory".into(), memory);
        amounts
    }

    /// Tells whether this number of tasks, and of GPUs of the job's total, fits on a node now.
    fn fits(&self, node: &Node, tasks: i64, gpus: i64) -> bool {
        let gpus = gpus + self.gpus_per_node + self.gpus_per_task * tasks;
        let free = node.gpus.iter().filter(|&&free| free >= self.share).count() as i64;
        let enough = |(name, amount): (&String, &i64)| amount <= node.free.get(name).unwrap_or(&0);
        gpus <= free && self.taken(tasks, gpus).iter().all(enough)
    }

    /// Returns how many tasks and GPUs of the job fit on a node now; `None` if they are too few.
    fn room(&self, index: usize, node: &Node) -> Option<Room> {
        let right_model = self.models.is_empty() || self.models.contains(&node.model);
        let (mut tasks, mut gpus) = (self.least_tasks, self.least_gpus);
        if !right_model || (self.exclusive && node.jobs > 0) || !self.fits(node, tasks, gpus) {
            return None;
        }
        while gpus < self.gpus && self.fits(node, tasks, gpus + 1) {
            gpus += 1;
        }
        while tasks < self.most_tasks && self.fits(node, tasks + 1, self.least_gpus) {
            tasks += 1;
        }
        Some(Room { index, tasks, gpus })
    }

    /// Returns the first nodes on which the job fits, each with its room there; `None` if it does not fit now.
    ///
    /// A job with a fixed number of nodes prefers those with room for an equal part of its tasks. If the first nodes do
    /// not suffice, the job gets those with the most room.
    fn choose(&self, nodes: &[Node]) -> Option<Vec<Room>> {
        let rooms = nodes.iter().enumerate().filter_map(|(index, node)| self.room(index, node));
        let rooms: Vec<Room> = rooms.collect();
        let (mut first, mut by_tasks, mut by_gpus) = (rooms.clone(), rooms.clone(), rooms);
        first.retain(|one| self.least_nodes < self.most_nodes || one.tasks * self.least_nodes >= self.tasks);
        by_tasks.sort_by_key(|one| -one.tasks);
        by_gpus.sort_by_key(|one| -one.gpus);
        for mut order in [first, by_tasks, by_gpus] {
            let (mut count, mut tasks, mut gpus) = (0, 0, 0);
            for one in order.iter().take(self.most_nodes as usize) {
                count += 1;
                tasks += one.tasks;
                gpus += one.gpus;
                if count >= self.least_nodes && tasks >= self.tasks && gpus >= self.gpus {
                    order.truncate(count as usize);
                    return Some(order);
                }
            }
        }
        None
    }

    /// Returns the chosen nodes by number, and the job's tasks and GPUs on each: as many as fit, but some on all.
    fn divide(&self, nodes: &[Node], mut chosen: Vec<Room>) -> Vec<Room> {
        let (mut tasks_left, mut gpus_left, mut later) = (self.tasks, self.gpus, chosen.len() as i64);
        let least_gpus = self.least_gpus.min(self.gpus / later);
        chosen.sort_by_key(|part| nodes[part.index].number);
        for part in &mut chosen {
            later -= 1; // nodes after this one
            part.tasks = part.tasks.min(tasks_left - later);
            part.gpus = part.gpus.min(gpus_left - later * least_gpus);
            tasks_left -= part.tasks;
            gpus_left -= part.gpus;
            part.gpus += self.gpus_per_node + self.gpus_per_task * part.tasks;
        }
        chosen
    }
}

/// Returns the intervals (first, last) of a set of units: "0-3 8".
fn intervals(text: &str) -> Vec<(i64, i64)> {
    let unit = |text: &str| text.parse().expect("a unit");
    let ends = text.split_whitespace().map(|piece| piece.split_once('-').unwrap_or((piece, piece)));
    ends.map(|(first, last)| (unit(first), unit(last))).collect()
}

// -- the necessary part of JSON: texts and numbers are kept as JSON ---------------------------------------------------

#[derive(Clone)]
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

    /// Returns a number, or `other` if it is absent or null.
    fn number(&self, other: i64) -> i64 {
        match self.raw() {
            "" | "null" => other,
            text => text.parse().expect("a whole number"),
        }
    }

    fn amounts(&self) -> Amounts {
        match self {
            Value::Map(pairs) => pairs.iter().map(|(name, amount)| (name.clone(), amount.number(0))).collect(),
            _ => Amounts::new(),
        }
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
    let welcome = server.ask(r#"{"type":"HELLO","data":{"name":"fcfs-rust","features":["resources","wake_when"]}}"#)?;
    if welcome.get("type").text() != "WELCOME" {
        eprintln!("{}", welcome.get("data").get("message").text());
        std::process::exit(1);
    }
    let mut scheduler = Scheduler { queue: VecDeque::new(), machine: Box::new(Units::default()) };
    let mut reply = String::from(r#"{"reply_to":0,"now":0,"events":[]}"#);
    loop {
        let notice = server.ask(&reply)?;
        let (now, events) = (notice.get("now").raw(), notice.get("events").items());
        let decisions = scheduler.decide(now, events);
        if events.last().map_or(false, |event| event.get("type").text() == "SIMULATION_ENDS") {
            return Ok(());
        }
        let (seq, when) = (notice.get("seq").raw(), scheduler.wake_when());
        reply = format!(r#"{{"reply_to":{seq},"now":{now},"events":[{decisions}],"wake_when":{when}}}"#);
    }
}
