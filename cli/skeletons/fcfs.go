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
	Request  Request  `json:"request"`
}

// Event is an event; its type decides which fields of Data are set.
type Event struct {
	Type string `json:"type"`
	Data struct {
		NbResources int      `json:"nb_resources"`
		Platform    Platform `json:"platform"`
		Job         Job      `json:"job"`
		JobID       string   `json:"job_id"`
		Alloc       string   `json:"alloc"`
		Message     string   `json:"message"`
	} `json:"data"`
}

// Start is the data of EXECUTE_JOB.
type Start struct {
	JobID string `json:"job_id"`
	Alloc string `json:"alloc"`
	Takes []Take `json:"takes,omitempty"`
}

// Decision is a decision of the scheduler.
type Decision struct {
	Timestamp json.Number `json:"timestamp"`
	Type      string      `json:"type"`
	Data      Start       `json:"data"`
}

// Machine records the free units or nodes.
type Machine interface {
	// place takes what a job requests and returns it as in EXECUTE_JOB; nil if too little is free.
	place(job *Job) *Start
	// giveBack frees what a job that has ended held.
	giveBack(jobID, alloc string)
}

var queue []Job // queued jobs
var machine Machine

// decide processes the events up to now (simulated time, s) and returns the decisions.
func decide(now json.Number, events []Event) []Decision {
	for _, event := range events {
		switch event.Type {
		case "SIMULATION_BEGINS":
			machine = &Units{[][2]int{{0, event.Data.NbResources - 1}}}
			if pools := event.Data.Platform.Pools; len(pools) > 0 && pools[0].Resources != nil {
				machine = newNodes(event.Data.Platform)
			}
		case "JOB_SUBMITTED":
			queue = append(queue, event.Data.Job)
		case "JOB_COMPLETED":
			machine.giveBack(event.Data.JobID, event.Data.Alloc)
		case "DECISION_REJECTED":
			fmt.Fprintln(os.Stderr, event.Data.Message)
			os.Exit(1) // a correct scheduler never gets this event
		}
	}
	decisions := []Decision{}
	for len(queue) > 0 {
		start := machine.place(&queue[0])
		if start == nil {
			break
		}
		queue = queue[1:]
		decisions = append(decisions, Decision{now, "EXECUTE_JOB", *start})
	}
	return decisions
}

// wakeWhen returns the events that need no notice now; no entry means that any event may start a job.
// A new job cannot pass a queued one, and an empty queue needs no free units.
func wakeWhen() map[string][]any {
	if len(queue) > 0 {
		return map[string][]any{"JOB_SUBMITTED": {}}
	}
	return map[string][]any{"JOB_COMPLETED": {}}
}

// Units is a machine whose units jobs do not share: each job takes the lowest free ones.
type Units struct {
	free [][2]int // intervals {first, last}, ascending, never adjacent
}

func (units *Units) place(job *Job) *Start {
	free := 0
	for _, part := range units.free {
		free += part[1] - part[0] + 1
	}
	if job.Res > free {
		return nil
	}
	var taken []string
	for count := job.Res; count > 0; {
		first, last := units.free[0][0], units.free[0][1]
		end := min(last, first+count-1)
		if end > first {
			taken = append(taken, fmt.Sprintf("%d-%d", first, end))
		} else {
			taken = append(taken, fmt.Sprint(first))
		}
		count -= end - first + 1
		if end == last {
			units.free = units.free[1:]
		} else {
			units.free[0][0] = end + 1
		}
	}
	return &Start{job.ID, strings.Join(taken, " "), nil}
}

func (units *Units) giveBack(jobID, alloc string) {
	all := append(intervals(alloc), units.free...)
	sort.Slice(all, func(one, other int) bool { return all[one][0] < all[other][0] })
	units.free = nil
	for _, part := range all {
		if end := len(units.free) - 1; end >= 0 && units.free[end][1]+1 == part[0] {
			units.free[end][1] = part[1]
		} else {
			units.free = append(units.free, part)
		}
	}
}

// Platform is the machine, as the server describes it.
type Platform struct {
	Licenses Amounts `json:"licenses"`
	Pools    []Pool  `json:"pools"`
}

// Pool is a group of equal nodes; Resources is nil if jobs take whole units.
type Pool struct {
	Nodes     string `json:"nodes"`
	Weight    *int   `json:"weight"`
	Resources *struct {
		Amounts  Amounts `json:"amounts"`
		GPUs     int     `json:"gpus"`
		GPUModel string  `json:"gpu_model"`
	} `json:"resources"`
}

func (pool Pool) weight() int {
	if pool.Weight == nil {
		return 1
	}
	return *pool.Weight
}

// Amounts maps resources to amounts in their base units.
type Amounts map[string]int

func (amounts Amounts) add(sign int, others Amounts) {
	for name, amount := range others {
		amounts[name] += sign * amount
	}
}

// Nodes is a machine whose nodes jobs share: each job takes cores, memory and GPUs of the first nodes where it fits.
type Nodes struct {
	licenses Amounts           // free licences
	nodes    []*Node           // by weight and number
	held     map[string]func() // functions that free what running jobs hold
}

// Take is what a job takes of a node, as in EXECUTE_JOB.
type Take struct {
	Nodes string `json:"nodes"`
	Tasks int    `json:"tasks"`
	GPUs  string `json:"gpus"`
}

func newNodes(platform Platform) *Nodes {
	machine := &Nodes{Amounts{}, nil, map[string]func(){}}
	machine.licenses.add(1, platform.Licenses)
	pools, countsMemory := platform.Pools, false
	for _, pool := range pools {
		_, counts := pool.Resources.Amounts["memory"]
		countsMemory = countsMemory || counts
	}
	sort.SliceStable(pools, func(one, other int) bool { return pools[one].weight() < pools[other].weight() })
	for _, pool := range pools {
		for _, part := range intervals(pool.Nodes) {
			for number := part[0]; number <= part[1]; number++ {
				node := &Node{number, pool.Resources.GPUModel, Amounts{}, make([]int, pool.Resources.GPUs), 0}
				if !countsMemory {
					node.free["memory"] = 1 << 60 // a machine that does not count memory has enough
				}
				node.free.add(1, pool.Resources.Amounts)
				for gpu := range node.gpus {
					node.gpus[gpu] = 1000
				}
				machine.nodes = append(machine.nodes, node)
			}
		}
	}
	return machine
}

func (machine *Nodes) place(job *Job) *Start {
	request := job.Request
	for name, count := range request.Licenses {
		if count > machine.licenses[name] {
			return nil
		}
	}
	chosen := request.choose(machine.nodes)
	if chosen == nil {
		return nil
	}
	var alloc []string
	var takes []Take
	frees := []func(){func() { machine.licenses.add(1, request.Licenses) }}
	machine.licenses.add(-1, request.Licenses)
	for _, part := range request.divide(chosen) {
		node, amounts, gpus := part.node, request.taken(part.tasks, part.gpus), part.gpus
		if request.Exclusive {
			amounts, gpus = Amounts{}, len(node.gpus)
			amounts.add(1, node.free)
		}
		numbers := node.fullest(gpus, request.GPUShare)
		node.change(-1, amounts, numbers, request.GPUShare)
		frees = append(frees, func() { node.change(1, amounts, numbers, request.GPUShare) })
		alloc = append(alloc, fmt.Sprint(node.number))
		takes = append(takes, Take{fmt.Sprint(node.number), part.tasks, strings.Trim(fmt.Sprint(numbers), "[]")})
	}
	machine.held[job.ID] = func() {
		for _, free := range frees {
			free()
		}
	}
	return &Start{job.ID, strings.Join(alloc, " "), takes}
}

func (machine *Nodes) giveBack(jobID, alloc string) {
	machine.held[jobID]()
	delete(machine.held, jobID)
}

// Node is what is free of a node; gpus has the thousandths of each GPU.
type Node struct {
	number int
	model  string
	free   Amounts
	gpus   []int
	jobs   int
}

// fullest returns the numbers of the GPUs with the least free capacity that suffices.
func (node *Node) fullest(count, share int) []int {
	var enough []int
	for gpu, free := range node.gpus {
		if free >= share {
			enough = append(enough, gpu)
		}
	}
	sort.SliceStable(enough, func(one, other int) bool { return node.gpus[enough[one]] < node.gpus[enough[other]] })
	sort.Ints(enough[:count])
	return enough[:count]
}

// change takes (-1) or frees (+1) amounts, and a share of each of some GPUs.
func (node *Node) change(sign int, amounts Amounts, gpus []int, share int) {
	node.jobs -= sign
	node.free.add(sign, amounts)
	for _, gpu := range gpus {
		node.gpus[gpu] += sign * share
	}
}

// Request is what a job requests; 'pipistrelle help protocol' explains the fields.
type Request struct {
	Nodes         int      `json:"nodes"`
	MostNodes     int      `json:"most_nodes"`
	Tasks         int      `json:"tasks"`
	TasksPerNode  int      `json:"tasks_per_node"`
	CoresPerTask  int      `json:"cores_per_task"`
	MemoryPerNode int      `json:"memory_per_node"`
	MemoryPerCore int      `json:"memory_per_core"`
	MemoryPerGPU  int      `json:"memory_per_gpu"`
	GPUs          int      `json:"gpus"`
	GPUsPerNode   int      `json:"gpus_per_node"`
	GPUsPerTask   int      `json:"gpus_per_task"`
	GPUShare      int      `json:"gpu_share"`
	GPUModels     []string `json:"gpu_models"`
	Exclusive     bool     `json:"exclusive"`
	Licenses      Amounts  `json:"licenses"`
	Others        Amounts  `json:"others"`

	// The numbers of tasks and nodes of the whole job, and of tasks and GPUs on each node.
	allTasks, leastNodes, mostNodes, leastTasks, mostTasks, leastGPUs int
}

// UnmarshalJSON reads a request; a number that is absent or null is 0, unless it has another default.
func (request *Request) UnmarshalJSON(text []byte) error {
	type plain Request
	*request = Request{CoresPerTask: 1000, GPUShare: 1000}
	if err := json.Unmarshal(text, (*plain)(request)); err != nil {
		return err
	}
	if request.Exclusive {
		request.GPUShare = 1000
	}
	nodes, tasks := or(request.Nodes, 1), request.Tasks
	request.allTasks = or(tasks, nodes*or(request.TasksPerNode, 1))
	request.mostTasks = or(request.TasksPerNode, or(tasks, 1))
	request.leastNodes = max(nodes, (request.allTasks+request.mostTasks-1)/request.mostTasks)
	most := min(or(request.MostNodes, or(request.Nodes, tasks)), tasks)
	request.mostNodes = max(request.leastNodes, most)
	request.leastTasks = max(1, request.allTasks-request.mostTasks*(request.mostNodes-1))
	if request.GPUs > 0 {
		request.leastGPUs = max(1, request.GPUs/request.mostNodes)
	}
	return nil
}

// Room is a node, and how many tasks and GPUs of a job fit or are there.
type Room struct {
	node        *Node
	tasks, gpus int
}

// taken returns the amounts that the job takes of a node with this number of its tasks and GPUs.
func (request *Request) taken(tasks, gpus int) Amounts {
	perTask := (request.MemoryPerCore*max(request.CoresPerTask, 1) + 999) / 1000
	memory := request.MemoryPerNode + tasks*perTask + gpus*request.MemoryPerGPU
	amounts := Amounts{"cores": tasks * request.CoresPerTask, "memory": memory}
	amounts.add(1, request.Others)
	return amounts
}

// fits tells whether this number of tasks, and of GPUs of the job's total, fits on a node now.
func (request *Request) fits(node *Node, tasks, gpus int) bool {
	gpus += request.GPUsPerNode + request.GPUsPerTask*tasks
	for name, amount := range request.taken(tasks, gpus) {
		if amount > node.free[name] {
			return false
		}
	}
	for _, free := range node.gpus {
		if free >= request.GPUShare {
			gpus--
		}
	}
	return gpus <= 0
}

// room returns how many tasks and GPUs of the job fit on a node now; no tasks if they are too few.
func (request *Request) room(node *Node) Room {
	rightModel := len(request.GPUModels) == 0
	for _, model := range request.GPUModels {
		rightModel = rightModel || model == node.model
	}
	tasks, gpus := request.leastTasks, request.leastGPUs
	if !rightModel || (request.Exclusive && node.jobs > 0) || !request.fits(node, tasks, gpus) {
		return Room{node, 0, 0}
	}
	for gpus < request.GPUs && request.fits(node, tasks, gpus+1) {
		gpus++
	}
	for tasks < request.mostTasks && request.fits(node, tasks+1, request.leastGPUs) {
		tasks++
	}
	return Room{node, tasks, gpus}
}

// choose returns the first nodes on which the job fits, each with its room there; nil if it does not fit now.
//
// A job with a fixed number of nodes prefers those with room for an equal part of its tasks. If the first nodes do not
// suffice, the job gets those with the most room.
func (request *Request) choose(nodes []*Node) []Room {
	var first, byTasks, byGPUs []Room
	for _, node := range nodes {
		room := request.room(node)
		if room.tasks == 0 {
			continue
		}
		byTasks, byGPUs = append(byTasks, room), append(byGPUs, room)
		if request.leastNodes < request.mostNodes || room.tasks*request.leastNodes >= request.allTasks {
			first = append(first, room)
		}
	}
	sort.SliceStable(byTasks, func(one, other int) bool { return byTasks[one].tasks > byTasks[other].tasks })
	sort.SliceStable(byGPUs, func(one, other int) bool { return byGPUs[one].gpus > byGPUs[other].gpus })
	for _, order := range [][]Room{first, byTasks, byGPUs} {
		tasks, gpus := 0, 0
		for count := 1; count <= min(request.mostNodes, len(order)); count++ {
			tasks, gpus = tasks+order[count-1].tasks, gpus+order[count-1].gpus
			if count >= request.leastNodes && tasks >= request.allTasks && gpus >= request.GPUs {
				return order[:count]
			}
		}
	}
	return nil
}

// divide returns the chosen nodes by number, and the job's tasks and GPUs on each: as many as fit, but some on all.
func (request *Request) divide(chosen []Room) []Room {
	tasks, gpus := request.allTasks, request.GPUs
	leastGPUs := min(request.leastGPUs, gpus/len(chosen))
	sort.Slice(chosen, func(one, other int) bool { return chosen[one].node.number < chosen[other].node.number })
	for place := range chosen {
		part, later := &chosen[place], len(chosen)-place-1
		part.tasks, part.gpus = min(part.tasks, tasks-later), min(part.gpus, gpus-later*leastGPUs)
		tasks, gpus = tasks-part.tasks, gpus-part.gpus
		part.gpus += request.GPUsPerNode + request.GPUsPerTask*part.tasks
	}
	return chosen
}

// intervals returns the intervals {first, last} of a set of units: "0-3 8".
func intervals(text string) [][2]int {
	var found [][2]int
	for _, piece := range strings.Fields(text) {
		var first, last int
		if n, _ := fmt.Sscanf(piece, "%d-%d", &first, &last); n == 1 {
			last = first
		}
		found = append(found, [2]int{first, last})
	}
	return found
}

// or returns a number, or the other one if it is 0.
func or(number, other int) int {
	if number == 0 {
		return other
	}
	return number
}

func min(one, other int) int {
	if one < other {
		return one
	}
	return other
}

func max(one, other int) int {
	return -min(-one, -other)
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
	hello := map[string]any{"name": "fcfs-go", "features": []string{"resources", "wake_when"}}
	send(server, map[string]any{"type": "HELLO", "data": hello})
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
			reply := map[string]any{"reply_to": said.Seq, "now": said.Now, "events": decisions, "wake_when": wakeWhen()}
			send(server, reply)
		}
	}
}
