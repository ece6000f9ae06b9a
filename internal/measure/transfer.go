package measure

import (
	"net/url"
	"time"
)

// Transfer is what one `thru transfer` found: the same bytes by several layers,
// so that it shows which of them binds.
type Transfer struct {
	URL       string   `json:"url"`       // secrets and query left out
	Protocol  string   `json:"protocol"`  // "ftp", "ftps", "sftp", "smb", "nfs", "nfs4", "rsync", "http", "https", "thru"
	Direction string   `json:"direction"` // Download or Upload
	Client    string   `json:"client"`    // what moved the bytes: "jlaffaye/ftp v0.2.0", "rsync 3.2.7"
	Server    string   `json:"server,omitempty"`
	Identity  string   `json:"server_fingerprint,omitempty"` // of its certificate or host key: "sha256:..."
	Agreed    []string `json:"negotiated,omitempty"`         // cipher, dialect, block sizes
	InFlight  int64    `json:"in_flight_bytes,omitempty"`    // bytes of requests that a client has under way at most; absent: its protocol streams, or it is not known
	Asked     Amount   `json:"asked"`

	Layers []Layer       `json:"layers"`              // from the lowest to the whole; the least of them binds
	Binds  string        `json:"binds,omitempty"`     // name of the layer that binds
	Why    string        `json:"why,omitempty"`       // in one line
	Runs   []TransferRun `json:"runs"`                // the transfers themselves
	Small  *TransferRun  `json:"small,omitempty"`     // --small: many small files, beside the large one
	Cells  []int         `json:"cells,omitempty"`     // of the document: the network's own goodput
	Ratios []Ratio       `json:"published,omitempty"` // published figures, as context
}

// Ends are who sends and who receives: the server by its name in the URL, and
// "local", which runs the command.
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

// Directions of a transfer, as the one who runs the command sees it.
const (
	Download = "download"
	Upload   = "upload"
)

// Amount is how much is moved, and how.
type Amount struct {
	Bytes       int64  `json:"bytes"`   // of each client
	Files       int    `json:"files"`   // of each client
	Clients     int    `json:"clients"` // at once
	BlockBytes  int64  `json:"block_bytes,omitempty"`
	BufferBytes int64  `json:"socket_buffer_bytes,omitempty"` // 0: the system's own
	From        string `json:"from"`                          // "generated", "file", "server"
	To          string `json:"to"`                            // "nowhere", "memory", "disk", "server"
	SizeWhy     string `json:"size_why,omitempty"`            // what the size is made of, where nobody has said one
}

// Layer is one floor of the waterfall.
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
	LayerDiskHere = "disk here"  // sequential, the direction that the transfer needs
	LayerDiskFar  = "disk there" // the same at the server
	LayerLibrary  = "client"     // the client against a server of its kind on this machine
	LayerMemory   = "protocol over memory"
	LayerWhole    = "protocol over disk"
)

// TransferRun is one run of all clients together.
type TransferRun struct {
	Layer       string     `json:"layer"` // LayerMemory, LayerWhole
	Bytes       int64      `json:"bytes"`
	Files       int        `json:"files"`
	ElapsedNs   int64      `json:"elapsed_ns"`
	SetupNs     int64      `json:"setup_ns"` // name, connection, login, until the first byte
	Bps         *Figure    `json:"goodput_bps,omitempty"`
	Passes      []float64  `json:"passes_bps,omitempty"`       // of all passes, where there were several, in their order: the best is the run
	Seconds     []float64  `json:"seconds_bps,omitempty"`      // each second, of all clients
	Each        []float64  `json:"each_client_bps,omitempty"`  // goodput of each of several clients, until it had all
	CRC32C      string     `json:"crc32c,omitempty"`           // of what passed, of one file: 8 hexadecimal digits (RFC 3720, appendix B.4)
	SHA256      string     `json:"sha256,omitempty"`           // of the file of this end, after the clock has stopped
	Checked     *bool      `json:"checksum_matches,omitempty"` // what arrived is what was sent; absent: there was nothing to compare it with
	LocalNs     int64      `json:"local_file_ns,omitzero"`     // that clients waited for files of this end, all together
	Sockets     []Stream   `json:"sockets,omitempty"`          // TCP of the data connections at this end, where it can be read
	There       []Stream   `json:"there_sockets,omitempty"`    // the same connections as the server's kernel has them, where an agent is there
	HereCPU     *CPUFigure `json:"here_cpu,omitempty"`
	ThereCPU    *CPUFigure `json:"there_cpu,omitempty"`
	HereHost    *HostSpan  `json:"here_host,omitempty"`      // what this host's counters did meanwhile; its Worker is this process, with HereProgram
	HereProgram string     `json:"here_program,omitempty"`   // that moved the bytes, in processes of its own; empty: this process did
	ThereHost   *HostSpan  `json:"there_host,omitempty"`     // the server's, where an agent is there; its Worker is of Programs
	Programs    []string   `json:"there_programs,omitempty"` // processes that had these connections at the server, the busiest first
	Error       *Error     `json:"error,omitempty"`
}

// Ratio is a published figure beside the one measured.
type Ratio struct {
	ID   string  `json:"id"` // "C10"
	Name string  `json:"name"`
	Bps  float64 `json:"published_bps"`
}

// DiskTest is what `thru disk` found of one file system.
type DiskTest struct {
	Where      string       `json:"where"`  // end point
	Path       string       `json:"path"`   // folder in which the file lay
	Method     string       `json:"method"` // "fio-3.33", "thru"
	Cache      string       `json:"cache"`  // how the page cache was kept out: "O_DIRECT", "file of 2 x memory", "not kept out: why"
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
	Memory     []DiskRun    `json:"memory,omitempty"` // the same over a file in memory, and to nowhere: what the method itself can do
	Missing    []NotChecked `json:"not_checked,omitempty"`
	Error      *Error       `json:"error,omitempty"`
}

// DiskRun is one access pattern with the number of workers that it took to reach
// the ceiling.
type DiskRun struct {
	Pattern    string     `json:"pattern"`          // SequentialRead...
	Target     string     `json:"target,omitempty"` // of a baseline: "/dev/shm", "/dev/null", "/dev/zero"; empty: the file
	BlockBytes int64      `json:"block_bytes"`
	Workers    int        `json:"workers"`                // that reached the most
	Rising     bool       `json:"still_rising,omitempty"` // the aggregate still rose with the most workers that were allowed
	ElapsedNs  int64      `json:"elapsed_ns"`             // of the step that the figures are of
	Tried      []DiskStep `json:"tried"`
	Bytes      *Figure    `json:"bytes_per_s,omitempty"`
	IOPS       *Figure    `json:"iops,omitempty"`
	Latency    *Latency   `json:"latency,omitempty"`
	BusyPct    *float64   `json:"device_busy_pct,omitempty"`
	CPU        *CPUFigure `json:"cpu,omitempty"`
}

// DiskStep is what a number of workers reached.
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

// DiskPatterns are all of them, in the order in which they are measured: reads
// first, so that what a write leaves behind in a device slows none of them.
func DiskPatterns() []string {
	return []string{SequentialRead, RandomRead, SequentialWrite, RandomWrite}
}

// DiskSpec says what is to be measured of a disk.
type DiskSpec struct {
	Patterns   []string `json:"patterns,omitempty"`    // none: all
	BlockBytes int64    `json:"block_bytes,omitempty"` // 0: SequentialBlock, RandomBlock
	FileBytes  int64    `json:"file_bytes,omitempty"`  // 0: chosen
	RunNs      int64    `json:"run_ns"`                // of each step
	By         string   `json:"by,omitempty"`          // DiskByFio, DiskByThru; empty: fio where it is installed
	Workers    int      `json:"workers,omitempty"`     // the most; 0: DiskWorkers
	NoMemory   bool     `json:"no_memory,omitempty"`   // leave the baseline in memory out
}

// Methods of DiskSpec.By.
const (
	DiskByFio  = "fio"
	DiskByThru = "thru"
)

// Bounds and defaults of a DiskSpec.
const (
	SequentialBlock = 128 << 10 // bytes
	RandomBlock     = 4 << 10   // bytes
	LeastDiskBlock  = 512       // bytes: a sector
	MostDiskBlock   = 64 << 20  // bytes
	DiskWorkers     = 64        // at most, unless told
	MostDiskWorkers = 256       // each has a histogram and a buffer
	LeastDiskRun    = 200 * time.Millisecond
	MostDiskRun     = time.Hour
)

// DiskTick is what a disk test is doing, for who watches it.
type DiskTick struct {
	Doing   string  `json:"doing"`             // pattern, or "making the file"
	Target  string  `json:"target,omitempty"`  // of a baseline
	Workers int     `json:"workers,omitempty"` // at once
	Bytes   float64 `json:"bytes_per_s"`       // in the last interval
	IOPS    float64 `json:"iops"`              // accesses a second, in the last interval
	DonePct float64 `json:"done_pct"`          // of this step
}
