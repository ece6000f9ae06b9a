package measure

import (
	"net/url"
	"time"
)

// Transfer is the result of one `thru transfer`: the same bytes through several layers, which shows the layer that binds.
type Transfer struct {
	URL       string   `json:"url"`       // without secrets and query
	Protocol  string   `json:"protocol"`  // "ftp", "ftps", "sftp", "smb", "nfs", "nfs4", "rsync", "http", "https", "thru"
	Direction string   `json:"direction"` // Download or Upload
	Client    string   `json:"client"`    // client software: "jlaffaye/ftp v0.2.0", "rsync 3.2.7"
	Server    string   `json:"server,omitempty"`
	Identity  string   `json:"server_fingerprint,omitempty"` // fingerprint of its certificate or host key: "sha256:..."
	Agreed    []string `json:"negotiated,omitempty"`         // cipher, dialect, block sizes
	InFlight  int64    `json:"in_flight_bytes,omitempty"`    // most bytes of requests that a client has in flight; absent: its protocol streams, or it is not known
	Asked     Amount   `json:"asked"`

	Layers []Layer       `json:"layers"`              // from the lowest to the whole; the slowest binds
	Binds  string        `json:"binds,omitempty"`     // name of the layer that binds
	Why    string        `json:"why,omitempty"`       // in one line
	Runs   []TransferRun `json:"runs"`                // the transfers themselves
	Small  *TransferRun  `json:"small,omitempty"`     // --small: many small files, for comparison with the large one
	Cells  []int         `json:"cells,omitempty"`     // indices in the document: the network's own goodput
	Ratios []Ratio       `json:"published,omitempty"` // published figures for comparison
}

// Ends returns the sender and the receiver: the server by its name in the URL, and "local", which runs the command.
func (t *Transfer) Ends() (from, to string) {
	server := "server"
	if u, err := url.Parse(t.URL); err == nil && u.Hostname() != "" {
		server = u.Hostname()
	}
	if t.Direction == Upload {
		return "local", server
	}
	return server, "local"
}

// Directions of a transfer, seen from the machine that runs the command.
const (
	Download = "download"
	Upload   = "upload"
)

// Amount is how much a transfer moves, and how.
type Amount struct {
	Bytes       int64  `json:"bytes"`   // of each client
	Files       int    `json:"files"`   // of each client
	Clients     int    `json:"clients"` // simultaneous clients
	BlockBytes  int64  `json:"block_bytes,omitempty"`
	BufferBytes int64  `json:"socket_buffer_bytes,omitempty"` // 0: the system's default
	From        string `json:"from"`                          // "generated", "file", "server"
	To          string `json:"to"`                            // "nowhere", "memory", "disk", "server"
	SizeWhy     string `json:"size_why,omitempty"`            // how thru chose the size, where the user gave none
}

// Layer is one layer of the waterfall.
type Layer struct {
	Name    string   `json:"name"` // LayerDiskFar...
	Bps     *float64 `json:"rate_bps,omitempty"`
	Low     *float64 `json:"low_bps,omitempty"`
	High    *float64 `json:"high_bps,omitempty"`
	Where   string   `json:"where,omitempty"` // end point
	How     string   `json:"how"`             // how it was measured
	Missing string   `json:"not_checked,omitempty"`
}

// Names of layers.
const (
	LayerNetwork  = "network"    // memory to memory, thru's own data plane
	LayerDiskHere = "disk here"  // sequential, in the direction of the transfer
	LayerDiskFar  = "disk there" // the same at the server
	LayerLibrary  = "client"     // the client with a server of its kind on this machine
	LayerMemory   = "protocol over memory"
	LayerWhole    = "protocol over disk"
)

// TransferRun is one run of all clients together.
type TransferRun struct {
	Layer       string     `json:"layer"` // LayerMemory, LayerWhole
	Bytes       int64      `json:"bytes"`
	Files       int        `json:"files"`
	ElapsedNs   int64      `json:"elapsed_ns"`
	SetupNs     int64      `json:"setup_ns"` // name resolution, connection and login, until the first byte
	Bps         *Figure    `json:"goodput_bps,omitempty"`
	Passes      []float64  `json:"passes_bps,omitempty"`       // each of several passes, in order; the run shows the best
	Seconds     []float64  `json:"seconds_bps,omitempty"`      // each second, of all clients
	Each        []float64  `json:"each_client_bps,omitempty"`  // goodput of each of several clients, until its end
	CRC32C      string     `json:"crc32c,omitempty"`           // of the data of one file: 8 hexadecimal digits (RFC 3720, appendix B.4)
	SHA256      string     `json:"sha256,omitempty"`           // of the file at this end, computed after the measured time
	Checked     *bool      `json:"checksum_matches,omitempty"` // the received data equals the sent data; absent: there was nothing to compare
	LocalNs     int64      `json:"local_file_ns,omitzero"`     // time that clients waited for files at this end, summed
	Sockets     []Stream   `json:"sockets,omitempty"`          // TCP of the data connections at this end, where readable
	There       []Stream   `json:"there_sockets,omitempty"`    // the same connections in the server's kernel, where it runs an agent
	HereCPU     *CPUFigure `json:"here_cpu,omitempty"`
	ThereCPU    *CPUFigure `json:"there_cpu,omitempty"`
	HereHost    *HostSpan  `json:"here_host,omitempty"`      // counters of this host during the run; its Worker is this process, with HereProgram
	HereProgram string     `json:"here_program,omitempty"`   // program that moved the bytes in its own processes; empty: this process did
	ThereHost   *HostSpan  `json:"there_host,omitempty"`     // the server's, where it runs an agent; its Worker covers Programs
	Programs    []string   `json:"there_programs,omitempty"` // processes that owned these connections at the server, the busiest first
	Error       *Error     `json:"error,omitempty"`
}

// Ratio is a published figure for comparison.
type Ratio struct {
	ID   string  `json:"id"` // "C10"
	Name string  `json:"name"`
	Bps  float64 `json:"published_bps"`
}

// DiskTest is the result of `thru disk` for one file system.
type DiskTest struct {
	Where      string       `json:"where"`  // end point
	Path       string       `json:"path"`   // folder of the file
	Method     string       `json:"method"` // "fio-3.33", "thru"
	Cache      string       `json:"cache"`  // how the page cache was bypassed: "O_DIRECT", "file of 2 x memory", "not kept out: why"
	FileBytes  int64        `json:"file_bytes"`
	FreeBytes  int64        `json:"free_before_bytes"`
	FileSystem string       `json:"file_system,omitempty"`
	Mount      string       `json:"mount,omitempty"`
	Options    string       `json:"mount_options,omitempty"`
	Device     string       `json:"device,omitempty"`
	Model      string       `json:"model,omitempty"`
	Scheduler  string       `json:"scheduler,omitempty"`
	Rotational *bool        `json:"rotational,omitempty"`
	Runs       []DiskRun    `json:"runs"`
	Memory     []DiskRun    `json:"memory,omitempty"` // the same with a file in memory, and to nowhere: the limit of the method itself
	Missing    []NotChecked `json:"not_checked,omitempty"`
	Error      *Error       `json:"error,omitempty"`
}

// DiskRun is one access pattern with the number of workers that reached the ceiling.
type DiskRun struct {
	Pattern    string     `json:"pattern"`          // SequentialRead...
	Target     string     `json:"target,omitempty"` // for a baseline: "/dev/shm", "/dev/null", "/dev/zero"; empty: the file
	BlockBytes int64      `json:"block_bytes"`
	Workers    int        `json:"workers"`                // workers that reached the highest rate
	Rising     bool       `json:"still_rising,omitempty"` // the total still rose at the largest allowed number of workers
	ElapsedNs  int64      `json:"elapsed_ns"`             // length of the step of these figures
	Tried      []DiskStep `json:"tried"`
	Bytes      *Figure    `json:"bytes_per_s,omitempty"`
	IOPS       *Figure    `json:"iops,omitempty"`
	Latency    *Latency   `json:"latency,omitempty"`
	BusyPct    *float64   `json:"device_busy_pct,omitempty"`
	CPU        *CPUFigure `json:"cpu,omitempty"`
}

// DiskStep is the rate at one number of workers.
type DiskStep struct {
	Workers int     `json:"workers"`
	Bytes   float64 `json:"bytes_per_s"`
}

// Patterns of disk access.
const (
	SequentialRead  = "sequential read"
	SequentialWrite = "sequential write"
	RandomRead      = "random read"
	RandomWrite     = "random write"
)

// DiskPatterns returns all patterns in the order of measurement: reads first, because pending work of a write could slow them down.
func DiskPatterns() []string {
	return []string{SequentialRead, RandomRead, SequentialWrite, RandomWrite}
}

// DiskSpec says what to measure of a disk.
type DiskSpec struct {
	Patterns   []string `json:"patterns,omitempty"`    // empty: all
	BlockBytes int64    `json:"block_bytes,omitempty"` // 0: SequentialBlock, RandomBlock
	FileBytes  int64    `json:"file_bytes,omitempty"`  // 0: chosen
	RunNs      int64    `json:"run_ns"`                // length of each step
	By         string   `json:"by,omitempty"`          // DiskByFio, DiskByThru; empty: fio where it is installed
	Workers    int      `json:"workers,omitempty"`     // most workers; 0: DiskWorkers
	NoMemory   bool     `json:"no_memory,omitempty"`   // skip the baseline in memory
}

// Methods of DiskSpec.By.
const (
	DiskByFio  = "fio"
	DiskByThru = "thru"
)

// Limits and defaults of a DiskSpec.
const (
	SequentialBlock = 128 << 10 // bytes
	RandomBlock     = 4 << 10   // bytes
	LeastDiskBlock  = 512       // bytes: a sector
	MostDiskBlock   = 64 << 20  // bytes
	DiskWorkers     = 64        // default maximum
	MostDiskWorkers = 256       // each has a histogram and a buffer
	LeastDiskRun    = 200 * time.Millisecond
	MostDiskRun     = time.Hour
)

// DiskTick is the progress of a disk test.
type DiskTick struct {
	Doing   string  `json:"doing"`             // pattern, or "making the file"
	Target  string  `json:"target,omitempty"`  // for a baseline
	Workers int     `json:"workers,omitempty"` // simultaneous workers
	Bytes   float64 `json:"bytes_per_s"`       // in the last interval
	IOPS    float64 `json:"iops"`              // accesses a second, in the last interval
	DonePct float64 `json:"done_pct"`          // of this step
}
