package tuning

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thru/lab"
)

// Who is killed, in a Kill.
const (
	Controller = "controller"   // thru tune at a, with the agent of its process
	Agent      = "agent"        // thru serve at b
	Both       = "both"         // at the same moment
	PowerCut   = "both, guards" // and all guards and other processes of both, as when the power fails: nobody is left to revert
)

// Kill is who is killed, and when.
type Kill struct {
	Who    string
	After  time.Duration // after the start of the tuning, if Write is 0
	Write  int           // else after so many writes to the journals of both hosts,
	Jitter time.Duration // plus this time;
	Open   bool          // then wait until a change is open
	Args   []string      // arguments of the tuning
}

// String returns the moment as text.
func (k Kill) String() string {
	if k.Write > 0 {
		return fmt.Sprintf("%s at write %d + %v", k.Who, k.Write, k.Jitter)
	}
	return fmt.Sprintf("%s after %v", k.Who, k.After.Round(time.Millisecond))
}

// Killed is the result of a Kill.
type Killed struct {
	Kill
	Ended  bool          // the tuning had ended before
	Open   int           // changes in the journals that were not reverted at that moment
	Last   string        // type of the last line in the newest journal: "change", "done"; empty: no journal
	Alone  bool          // all settings were restored without a rollback
	Healed time.Duration // time until then
	Left   []string      // settings that differ after the rollback
	Wrong  string        // other violations
}

// String returns a row of the table.
func (k Killed) String() string {
	alone := "by rollback"
	if k.Alone {
		alone = fmt.Sprintf("alone, %.1f s", k.Healed.Seconds())
	}
	if k.Ended {
		alone = "it was over"
	}
	return strings.TrimSpace(fmt.Sprintf("%-44s after %-7s %d open, undone %s %s %s", k.Kill, cmp.Or(k.Last, "nothing")+",", k.Open, alone, strings.Join(k.Left, " | "), k.Wrong))
}

// Right reports whether all settings are as before the tuning, restored as promised.
func (k Killed) Right() bool { return len(k.Left) == 0 && k.Wrong == "" }

// TooFew names those of whom less than one in five kills met an open change: they prove little.
func TooFew(all []Killed) (wrong []string) {
	for _, who := range []string{Controller, Agent, Both, PowerCut, ""} { // "": all together
		killed, open := 0, 0
		for _, k := range all {
			if who != "" && k.Who != who {
				continue
			}
			if killed++; k.Open > 0 {
				open++
			}
		}
		if open < killed/5 {
			wrong = append(wrong, fmt.Sprintf("%s: of %d kills only %d met a change that was open", cmp.Or(who, "all"), killed, open))
		}
	}
	return wrong
}

// aloneLimit is thru's promise: within this time after the loss of a controller or an agent, its changes are
// reverted.
const aloneLimit = 30 * time.Second

// Do starts a tuning of b, kills, waits until the survivors have reverted everything, rolls back, and
// compares the settings. Afterwards the end point serves again.
func (k Kill) Do(s *Scene) Killed {
	s.t.Helper()
	if s.serves == nil || !s.serves.Running() {
		s.Serve()
	}
	before := s.Settings()
	writes, err := s.watchJournals()
	if err != nil {
		s.t.Fatalf("tuning: watching the journals: %v", err)
	}
	defer writes.Close()
	tunes := s.Start(s.A, "", append(words("tune %s --json --yes", Peer), k.Args...)...)
	k.wait(s, tunes, writes)
	r := Killed{Kill: k, Ended: !tunes.Running()}
	r.Open, r.Last = s.journals()
	k.strike(s, tunes)
	dead := time.Now()
	if k.Who != PowerCut && !r.Ended {
		r.wait(s, before, dead)
	}
	tunes.Wait(aloneLimit) // where it lost the agent, it reverts its own changes and says so
	s.RollBack()
	r.Left = s.Changed(before)
	return r
}

// wait waits for the moment, or for the end of the tuning.
func (k Kill) wait(s *Scene, tunes *Program, writes *journalWatch) {
	if k.Write == 0 {
		select {
		case <-tunes.ended:
		case <-time.After(k.After):
		}
		return
	}
	for n := 0; n < k.Write && tunes.Running(); {
		n += writes.next(100 * time.Millisecond)
	}
	time.Sleep(k.Jitter)
	for open := 0; k.Open && open == 0 && tunes.Running(); {
		writes.next(20 * time.Millisecond)
		open, _ = s.journals()
	}
}

// strike kills the processes.
func (k Kill) strike(s *Scene, tunes *Program) {
	s.t.Helper()
	if k.Who == PowerCut {
		for _, h := range s.Hosts() {
			for _, pid := range h.Pids() {
				_ = unix.Kill(pid, unix.SIGKILL) // it may be gone already
			}
		}
	}
	if k.Who != Agent {
		tunes.Signal(syscall.SIGKILL)
	}
	if k.Who != Controller {
		s.serves.Signal(syscall.SIGKILL)
		s.serves.Wait(shortLimit)
	}
	if k.Who != Agent {
		tunes.Wait(shortLimit)
	}
}

// wait waits until the survivors have reverted everything.
func (r *Killed) wait(s *Scene, before [2]lab.Settings, dead time.Time) {
	s.t.Helper()
	var left []string
	for time.Since(dead) < aloneLimit {
		if left = s.Changed(before); len(left) == 0 {
			r.Alone, r.Healed = true, time.Since(dead)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	r.Wrong = fmt.Sprintf("not undone within %v: %s", aloneLimit, strings.Join(left, " | "))
}

// Kills chooses random moments: half of them after a write to a journal, where a change is about to be made,
// and half at any time.
func Kills(seed uint64, first, n int, whole time.Duration, writes int) []Kill {
	var all []Kill
	for i := first; i < first+n; i++ {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		k := Kill{Who: []string{Controller, Agent, Both, PowerCut}[i%4], Args: attempts(r)}
		if r.IntN(2) == 0 {
			k.After = time.Duration(r.Int64N(int64(whole)))
		} else {
			k.Write, k.Jitter = 1+r.IntN(writes), max(0, time.Duration(r.Int64N(int64(4*time.Millisecond)))-2*time.Millisecond) // half of these at once, before it is on the disk
		}
		all = append(all, k)
	}
	return all
}

// attempts chooses three random changes for a tuning to try, some of several settings; its runs are as short
// as possible.
func attempts(r *rand.Rand) []string {
	dev := ":" + lab.DataDev
	possible := []string{
		"tcp-rmem=4096 131072 8388608@peer", "tcp-wmem=4096 65536 8388608@local", "tcp-rmem=4096 131072 8388608@local", "mtu=1400@peer" + dev,
		"tso=off@local" + dev, "tx-checksum=off@peer" + dev, "gso=off@local" + dev, "txqueuelen=500@peer" + dev, "mtu-probing=1@local",
		"slow-start-after-idle=0@peer", "channels=rx 2 tx 2@local" + dev, "scatter-gather=off@local" + dev,
	}
	args := words("-t 0.3 -O 0.1 --one-way --budget 60s")
	for _, i := range r.Perm(len(possible))[:3] {
		args = append(args, "--try", possible[i])
	}
	return args
}

// journals returns how many changes are open in the journals of both hosts, and the type of the last line. It
// ignores an incomplete line.
func (s *Scene) journals() (open int, last string) {
	var newest time.Time
	for _, h := range s.Hosts() {
		files, _ := filepath.Glob(filepath.Join(s.state(h), "*.jsonl")) // fails only for a bad pattern
		for _, name := range files {
			info, err := os.Stat(name)
			text, err2 := os.ReadFile(name)
			if errors.Join(err, err2) != nil {
				continue // removed just now: it has no open change
			}
			n, kind := journalLines(string(text))
			open += n
			if info.ModTime().After(newest) {
				newest, last = info.ModTime(), kind
			}
		}
	}
	return open, last
}

// journalLines counts the changes of a journal that are not reverted.
func journalLines(text string) (open int, last string) {
	for line := range strings.Lines(text) {
		var entry struct{ Line string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		switch last = entry.Line; last {
		case "change":
			open++
		case "undone":
			open--
		}
	}
	return open, last
}

// journalWatch reports writes to the journals of both hosts (inotify(7)).
type journalWatch struct{ *os.File }

// watchJournals watches the folders, and makes them if needed.
func (s *Scene) watchJournals() (*journalWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "journals")
	for _, h := range s.Hosts() {
		err = errors.Join(err, os.MkdirAll(s.state(h), 0o700))
		_, wrong := unix.InotifyAddWatch(fd, s.state(h), unix.IN_MODIFY)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journalWatch{file}, nil
}

// next waits for writes until the limit, and counts them.
func (w *journalWatch) next(limit time.Duration) int {
	var b [4096]byte
	_ = w.SetReadDeadline(time.Now().Add(limit))
	got, err := w.Read(b[:])
	if err != nil {
		return 0
	}
	n := 0
	for at := 0; at+unix.SizeofInotifyEvent <= got; n++ {
		at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[at+12:])) // the length of the name ends struct inotify_event
	}
	return n
}
