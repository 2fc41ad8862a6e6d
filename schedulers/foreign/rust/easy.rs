//! EASY backfilling for Pipistrelle, in Rust, with the crates zmq and serde_json.
//!
//!     pipistrelle run --scheduler schedulers/foreign/rust
//!
//! The first in the queue that does not fit gets a reservation: the time at which, by the walltimes of the running
//! jobs, enough units will be free for it (the shadow), and what is left over then (the extra units). A job behind it
//! may start if it ends by the shadow, or needs no more than the extra units. Every job gets the lowest free units.
//!
//! See docs/how-to/foreign-schedulers.md and protocol/SPEC.md.

use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::error::Error;

type Anyhow<T> = Result<T, Box<dyn Error>>;

/// Longest silence of the server, in ms; ZeroMQ itself would wait for ever for a server that is gone.
const SILENCE: i32 = 600 * 1000;

// -- sets of units: {first: last} of ascending intervals that do not touch --------------------------------------------

#[derive(Default)]
struct Units {
    intervals: BTreeMap<u64, u64>,
    count: u64,
}

impl Units {
    fn all(count: u64) -> Units {
        Units { intervals: BTreeMap::from([(0, count - 1)]), count }
    }

    /// Takes the lowest units and returns them as text, such as "0-3 8"; there are enough.
    fn take_lowest(&mut self, mut count: u64) -> String {
        let mut taken = Vec::new();
        self.count -= count;
        while count > 0 {
            let (&first, &last) = self.intervals.iter().next().expect("enough units");
            self.intervals.remove(&first);
            let end = last.min(first + count - 1);
            taken.push(if end > first { format!("{first}-{end}") } else { format!("{first}") });
            count -= end - first + 1;
            if end < last {
                self.intervals.insert(end + 1, last);
            }
        }
        taken.join(" ")
    }

    fn give_back(&mut self, text: &str) -> Anyhow<()> {
        for piece in text.split(' ').filter(|piece| !piece.is_empty()) {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let (mut first, mut last) = (first.parse::<u64>()?, last.parse::<u64>()?);
            self.count += last - first + 1;
            if let Some(end) = self.intervals.remove(&(last + 1)) {
                last = end;
            }
            if let Some((&begin, &end)) = self.intervals.range(..first).next_back() {
                if end + 1 == first {
                    first = begin;
                }
            }
            self.intervals.insert(first, last);
        }
        Ok(())
    }
}

// -- the scheduler ----------------------------------------------------------------------------------------------------

struct Job {
    id: String,
    number: u64,   // in the order of submission; settles ties
    res: u64,      // number of units
    submit: f64,   // s
    occupies: f64, // longest time (s) that it holds its units, with prologue and epilogue; infinite without a walltime
    end: f64,      // latest end (s) of a running job
}

/// Puts a job into a list that is sorted by `key`, ties by the jobs' numbers.
fn insert(list: &mut Vec<Job>, job: Job, key: fn(&Job) -> f64) {
    let place = list.partition_point(|other| (key(other), other.number) < (key(&job), job.number));
    list.insert(place, job);
}

#[derive(Default)]
struct Easy {
    total: u64, // units of the machine
    free: Units,
    beside: f64, // s, the longest prologue and epilogue
    submitted: u64,
    waiting: Vec<Job>, // by submit time
    running: Vec<Job>, // by end
    now: f64,          // s of simulated time, never of a clock
    decisions: Vec<Value>,
}

impl Easy {
    /// Returns the reply to a notice; None if the simulation has ended.
    fn answer(&mut self, notice: &Value) -> Anyhow<Option<Value>> {
        self.now = notice["now"].as_f64().ok_or("a notice without 'now'")?;
        for event in notice["events"].as_array().ok_or("a notice without 'events'")? {
            let data = &event["data"];
            match event["type"].as_str().unwrap_or_default() {
                "SIMULATION_BEGINS" => self.begin(data)?,
                "JOB_SUBMITTED" => self.submit(&data["job"], event["timestamp"].as_f64())?,
                "JOB_COMPLETED" => self.complete(data)?,
                "DECISION_REJECTED" => return Err(data["message"].to_string().into()),
                "SIMULATION_ENDS" => return Ok(None),
                _ => {}
            }
        }
        while self.waiting.first().map_or(false, |first| first.res <= self.free.count) {
            self.start(0, None);
        }
        if !self.waiting.is_empty() && self.free.count > 0 {
            self.backfill();
        }
        let decisions = std::mem::take(&mut self.decisions);
        let mut reply = json!({"reply_to": notice["seq"], "now": self.now, "events": decisions});
        let least = self.waiting.iter().map(|job| job.res).min();
        if least.map_or(true, |least| least > self.free.count) {
            // No queued job fits: a job can start only if it fits when it is submitted, or after others have ended.
            let ends: Vec<Value> = least.iter().map(|least| json!({ "free": least })).collect();
            reply["wake_when"] = json!({"JOB_SUBMITTED": [{"spare": 0}], "JOB_COMPLETED": ends});
        }
        Ok(Some(reply))
    }

    fn begin(&mut self, data: &Value) -> Anyhow<()> {
        let none = Vec::new();
        let pools = data["platform"]["pools"].as_array().unwrap_or(&none);
        let longest = |key: &str| pools.iter().filter_map(|pool| pool[key].as_f64()).fold(0.0, f64::max);
        self.beside = longest("prologue") + longest("epilogue");
        self.total = data["nb_resources"].as_u64().ok_or("a machine without units")?;
        self.free = Units::all(self.total);
        Ok(())
    }

    fn submit(&mut self, asked: &Value, timestamp: Option<f64>) -> Anyhow<()> {
        let id = asked["id"].as_str().ok_or("a job without id")?.to_string();
        let res = asked["res"].as_u64().ok_or("a job without 'res'")?;
        let number = self.submitted;
        self.submitted += 1;
        if res > self.total {
            self.reject(&id, format!("needs {res} units, the machine has {}", self.total));
        } else if !(asked["constraint"].is_null() && asked["units_per_node"].is_null()) {
            self.reject(&id, "asks for nodes of some kind, which this scheduler does not tell apart".to_string());
        } else {
            let submit = asked["subtime"].as_f64().or(timestamp).ok_or("a job without a time")?;
            let occupies = asked["walltime"].as_f64().unwrap_or(f64::INFINITY) + self.beside;
            let job = Job { id, number, res, submit, occupies, end: f64::NAN };
            insert(&mut self.waiting, job, |job| job.submit);
        }
        Ok(())
    }

    fn complete(&mut self, data: &Value) -> Anyhow<()> {
        let place = self.running.iter().position(|job| data["job_id"] == job.id.as_str());
        self.running.remove(place.ok_or("a job has ended that did not run")?);
        self.free.give_back(data["alloc"].as_str().unwrap_or_default())
    }

    /// Lets jobs pass the first in the queue, which does not fit.
    fn backfill(&mut self) {
        let first = &self.waiting[0];
        let (mut shadow, mut then_free) = (f64::INFINITY, self.free.count);
        for job in &self.running {
            if job.end > shadow {
                break; // all that end by then count
            }
            then_free += job.res;
            if then_free >= first.res {
                shadow = job.end;
            }
        }
        let mut extra = then_free.saturating_sub(first.res);
        let why = format!("backfilled before {}", first.id);
        let mut place = 1;
        while place < self.waiting.len() && self.free.count > 0 {
            let job = &self.waiting[place];
            let in_time = self.now + job.occupies <= shadow;
            if job.res <= self.free.count && (in_time || job.res <= extra) {
                if !in_time {
                    extra -= job.res;
                }
                self.start(place, Some(&why)); // the next one has this place now
            } else {
                place += 1;
            }
        }
    }

    fn start(&mut self, place: usize, why: Option<&str>) {
        let mut job = self.waiting.remove(place);
        job.end = self.now + job.occupies;
        let mut data = json!({"job_id": job.id, "alloc": self.free.take_lowest(job.res)});
        if let Some(why) = why {
            data["why"] = json!(why);
        }
        self.decide("EXECUTE_JOB", data);
        insert(&mut self.running, job, |job| job.end);
    }

    fn reject(&mut self, id: &str, why: String) {
        self.decide("REJECT_JOB", json!({"job_id": id, "why": why}));
    }

    fn decide(&mut self, kind: &str, data: Value) {
        self.decisions.push(json!({"timestamp": self.now, "type": kind, "data": data}));
    }
}

// -- the conversation -------------------------------------------------------------------------------------------------

/// Sends a message and returns the answer.
fn ask(socket: &zmq::Socket, message: &Value) -> Anyhow<Value> {
    socket.send(message.to_string().as_bytes(), 0)?;
    let received: Value = serde_json::from_slice(&socket.recv_msg(0)?)?;
    if received["type"] == "REFUSED" {
        return Err(format!("the server refused: {}", received["data"]["message"]).into());
    }
    Ok(received)
}

fn serve() -> Anyhow<()> {
    let endpoint = std::env::args().nth(1).or_else(|| std::env::var("PIPISTRELLE_ENDPOINT").ok());
    let socket = zmq::Context::new().socket(zmq::REQ)?;
    socket.set_rcvtimeo(SILENCE)?;
    socket.set_linger(0)?;
    socket.connect(&endpoint.ok_or("usage: easy ENDPOINT")?)?;
    ask(&socket, &json!({"type": "HELLO", "data": {"name": "easy-rust", "features": ["wake_when"]}}))?;
    let mut easy = Easy::default();
    let mut reply = json!({"reply_to": 0, "now": 0.0, "events": []});
    while let Some(next) = easy.answer(&ask(&socket, &reply)?)? {
        reply = next;
    }
    Ok(())
}

fn main() {
    if let Err(error) = serve() {
        eprintln!("easy-rust: {error}");
        std::process::exit(1);
    }
}
