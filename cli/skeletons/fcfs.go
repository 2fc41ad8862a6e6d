// A scheduler for Pipistrelle: first come, first served. It needs only Go's standard library.
//
//	go build -o ./scheduler scheduler.go
//	pipistrelle run --strict --scheduler ./scheduler {endpoint}
//
// 'pipistrelle help write-your-scheduler' explains it; 'pipistrelle help protocol' shows all messages.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strings"
)

// -- the scheduler: change this part ----------------------------------------------------------------------------------

// Job is a queued job; Walltime (s) is nil if the job has none.
type Job struct {
	ID       string   `json:"id"`
	Res      int      `json:"res"`
	Walltime *float64 `json:"walltime"`
}

// Event is an event; its type decides which fields of Data are set.
type Event struct {
	Type string `json:"type"`
	Data struct {
		NbResources int    `json:"nb_resources"`
		Job         Job    `json:"job"`
		Alloc       string `json:"alloc"`
		Message     string `json:"message"`
	} `json:"data"`
}

// Start is the data of EXECUTE_JOB.
type Start struct {
	JobID string `json:"job_id"`
	Alloc string `json:"alloc"`
}

// Decision is a decision of the scheduler.
type Decision struct {
	Timestamp json.Number `json:"timestamp"`
	Type      string      `json:"type"`
	Data      Start       `json:"data"`
}

var queue []Job   // queued jobs
var free [][2]int // free units: intervals {first, last}, ascending, never adjacent

// takeLowest takes the count lowest free units and returns them as text, such as "0-3 8".
func takeLowest(count int) string {
	var taken []string
	for count > 0 {
		first, last := free[0][0], free[0][1]
		end := last
		if first+count-1 < last {
			end = first + count - 1
		}
		if end > first {
			taken = append(taken, fmt.Sprintf("%d-%d", first, end))
		} else {
			taken = append(taken, fmt.Sprint(first))
		}
		count -= end - first + 1
		if end == last {
			free = free[1:]
		} else {
			free[0][0] = end + 1
		}
	}
	return strings.Join(taken, " ")
}

// giveBack frees the units in a text such as "0-3 8".
func giveBack(text string) {
	all := append([][2]int{}, free...)
	for _, piece := range strings.Fields(text) {
		var first, last int
		if n, _ := fmt.Sscanf(piece, "%d-%d", &first, &last); n == 1 {
			last = first
		}
		all = append(all, [2]int{first, last})
	}
	sort.Slice(all, func(one, other int) bool { return all[one][0] < all[other][0] })
	free = free[:0:0]
	for _, part := range all {
		if end := len(free) - 1; end >= 0 && free[end][1]+1 == part[0] {
			free[end][1] = part[1]
		} else {
			free = append(free, part)
		}
	}
}

// decide processes the events up to now (simulated time, s) and returns the decisions.
func decide(now json.Number, events []Event) []Decision {
	for _, event := range events {
		switch event.Type {
		case "SIMULATION_BEGINS":
			free = [][2]int{{0, event.Data.NbResources - 1}}
		case "JOB_SUBMITTED":
			queue = append(queue, event.Data.Job)
		case "JOB_COMPLETED":
			giveBack(event.Data.Alloc)
		case "DECISION_REJECTED":
			fmt.Fprintln(os.Stderr, event.Data.Message)
			os.Exit(1) // a correct scheduler never gets this event
		}
	}
	decisions, count := []Decision{}, 0
	for _, part := range free {
		count += part[1] - part[0] + 1
	}
	for len(queue) > 0 && queue[0].Res <= count {
		job := queue[0]
		queue = queue[1:]
		count -= job.Res
		decisions = append(decisions, Decision{now, "EXECUTE_JOB", Start{job.ID, takeLowest(job.Res)}})
	}
	return decisions
}

// -- the connection: a ZeroMQ REQ socket (ZMTP 3.0); no changes needed ------------------------------------------------

type message struct {
	Type   string          `json:"type"`
	Data   json.RawMessage `json:"data"`
	Seq    int             `json:"seq"`
	Now    json.Number     `json:"now"`
	Events []Event         `json:"events"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(to net.Conn, content []byte) {
	_, err := to.Write(content)
	must(err)
}

func send(to net.Conn, value any) {
	content, err := json.Marshal(value)
	must(err)
	head := []byte{1, 0, 2} // an empty frame, then the length of the content
	write(to, append(binary.BigEndian.AppendUint64(head, uint64(len(content))), content...))
}

func receive(from io.Reader, size uint64) []byte {
	content := make([]byte, size)
	_, err := io.ReadFull(from, content)
	must(err)
	return content
}

// frame returns the flags and the content of the next frame.
func frame(from io.Reader) (byte, []byte) {
	flags := receive(from, 1)[0]
	if flags&2 != 0 {
		return flags, receive(from, binary.BigEndian.Uint64(receive(from, 8)))
	}
	return flags, receive(from, uint64(receive(from, 1)[0]))
}

func main() {
	endpoint := os.Getenv("PIPISTRELLE_ENDPOINT")
	if len(os.Args) > 1 {
		endpoint = os.Args[1]
	}
	network, address, found := strings.Cut(endpoint, "://")
	if !found {
		fmt.Fprintln(os.Stderr, "usage: scheduler ENDPOINT")
		os.Exit(2)
	}
	if network == "ipc" {
		network = "unix"
	}
	server, err := net.Dial(network, address)
	must(err)
	greeting := make([]byte, 64)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL")
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
	write(server, greeting)
	write(server, append([]byte{4, byte(len(ready))}, ready...))
	from := bufio.NewReader(server)
	receive(from, 64)
	frame(from) // the server's READY
	send(server, map[string]any{"type": "HELLO", "data": map[string]string{"name": "fcfs-go"}})
	for {
		flags, content := frame(from)
		if flags&5 != 0 { // a command, or the empty frame before a message
			continue
		}
		var said message
		must(json.Unmarshal(content, &said))
		switch said.Type {
		case "REFUSED":
			must(fmt.Errorf("%s", said.Data))
		case "WELCOME":
			send(server, map[string]any{"reply_to": 0, "now": 0, "events": []Decision{}})
		default:
			decisions := decide(said.Now, said.Events)
			if said.Events[len(said.Events)-1].Type == "SIMULATION_ENDS" {
				return
			}
			send(server, map[string]any{"reply_to": said.Seq, "now": said.Now, "events": decisions})
		}
	}
}
