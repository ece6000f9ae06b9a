package cli

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"time"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/plan"
	"thru/internal/remote"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/own"
	"thru/internal/transfer/runner"
	"thru/internal/transfer/session"
	"thru/internal/unit"
)

// Limits of what a server is asked for.
const (
	mostClients = 64
	mostSmall   = 10_000
)

type transferCmd struct {
	URL        string `arg:"" name:"url" help:"PROTO://[USER@]HOST[:PORT]/PATH with ftp, ftps, sftp, smb, nfs, nfs4, rsync, http or https; with smb the first part of PATH is the share; nfs is version 3, or 4.1 if the server lacks version 3; nfs4 is 4.1. Or thru://END-POINT/PATH: over thru's own data plane, with the path on that host (thru serve --allow files --files DIR there)."`
	Upload     bool   `group:"What" name:"upload" help:"Upload to the server (default: download from it)."`
	From       string `group:"What" name:"from" placeholder:"generated|FILE" help:"What to upload (default: generated). generated without --upload: upload it first, download, compare and remove it."`
	To         string `group:"What" name:"to" placeholder:"nowhere|memory|FILE" help:"Where a download goes (default: nowhere). With FILE, thru measures both, without and with the local disk."`
	Size       int64  `group:"What" name:"size" type:"size" like:"1G or 64M" placeholder:"SIZE" help:"Bytes of generated data, for each client (default: enough for 10 s, by a short trial)."`
	Many       int    `group:"What" name:"many" placeholder:"N" default:"1" help:"Clients at once."`
	Small      int    `group:"What" name:"small" placeholder:"N" help:"Also transfer N files of 64 KiB one after the other, to compare with the large one; they are uploaded and removed."`
	Overwrite  bool   `group:"What" name:"overwrite" help:"Replace an existing file: at the server only with the file of --from, or with --keep; other generated data takes another name."`
	Keep       bool   `group:"What" name:"keep" help:"Leave generated data at the server."`
	NoDisk     bool   `group:"What" name:"no-disk" help:"Do not measure the local disk separately: estimate its rate from the time that the transfer spent in its file."`
	NoCeiling  bool   `group:"What" name:"no-ceiling" help:"Do not measure the ceiling of the client alone, which takes up to 3 s."`
	NoChecksum bool   `group:"What" name:"no-checksum" help:"Skip the checksums: CRC-32C of the data, and SHA-256 of a local file."`
	Unread     bool   `group:"What" name:"no-read-back" help:"Do not download the uploaded file to compare it."`

	Buffer int64         `group:"How" name:"buffer" type:"size" like:"64K or 2000000" most:"1G" placeholder:"SIZE" help:"Socket buffers of data connections, such as 64K or 2000000 (default: the kernel tunes them)."`
	Block  int64         `group:"How" name:"block" type:"size" like:"128K or 1M" most:"1G" placeholder:"SIZE" help:"Bytes per read and write of the protocol, such as 128K (default: the protocol's own)."`
	Wait   time.Duration `group:"How" name:"timeout" default:"30s" placeholder:"TIME" help:"Give up after this time without any byte."`

	PasswordStdin bool   `group:"Login" name:"password-stdin" help:"Read the password from the first line of stdin (else: THRU_PASSWORD)."`
	Key           string `group:"Login" short:"i" name:"identity" type:"place" placeholder:"FILE" help:"sftp: private key."`
	Pin           string `group:"Login" name:"pin" placeholder:"SHA256" help:"Accept only this certificate or host key."`
	Insecure      bool   `group:"Login" name:"insecure" help:"Accept any certificate or host key."`

	EndPoint     string        `group:"Ends" name:"end-point" placeholder:"NAME" help:"Agent at the server (thru serve there), to also measure the network from memory to memory (default: the one that thru:// names)."`
	ServerFolder string        `group:"Ends" name:"server-folder" placeholder:"DIR" help:"With --end-point: folder of the file on that host, to also measure its disk (thru serve --allow files --files DIR there; default: the one that thru:// names)."`
	Port         int           `group:"Ends" short:"p" default:"5200" help:"Control port of the end point."`
	Time         time.Duration `group:"Ends" short:"t" type:"time" like:"10 or 0.5" default:"5s" placeholder:"SECONDS" help:"How long the network is measured (default 5)."`
	Force        bool          `group:"Ends" name:"force" help:"Measure the network although a gate fails."`
	formFlags
	storeFlags
}

// Run transfers files, measures the layers below the transfer, and reports which layer limits it.
func (c *transferCmd) Run(ctx context.Context, e *env) error {
	m, err := c.transfer(e)
	if err != nil {
		return err
	}
	s, err := e.open(ctx, e.dialer(plan.Request{}, c.Port), c.EndPoint, &plan.Request{}, c.formFlags, hypervisorFlags{})
	if err != nil {
		return err
	}
	defer s.close()
	var agent own.Agent
	peer := s.ends.Peer
	if peer.Client != nil {
		agent = peer.Client
	}
	if err := m.UseAgent(peer.Name, agent, peer.Hello, peer.DataHosts); err != nil {
		return err
	}
	x := control.Transferring{Transfer: m.Asked(), Runner: m, There: c.ServerFolder}
	if x.Here, err = m.Folder(); err != nil {
		return err
	}
	if c.NoDisk {
		x.Here = ""
	}
	if c.EndPoint != "" && c.EndPoint != control.Local || m.Ours() {
		x.Server = peer
	}
	if x.Network, err = c.network(s.ends); err != nil {
		return err
	}
	p := e.Board(false)
	m.Live = func(l runner.Live) { p.Checking(liveTransfer(l)) }
	s.runner.Watch, s.runner.Gating.Force = p, c.Force
	doc, err := s.runner.Transfer(ctx, x)
	return s.end(doc, session.Hinted(err, c.Overwrite))
}

// liveTransfer words the progress of a transfer.
func liveTransfer(l runner.Live) string {
	if l.Total <= 0 {
		return unit.Size(l.Bytes) + ", " + unit.Rate(l.Bps)
	}
	left := ""
	if l.Bps > 0 {
		left = ", about " + unit.Duration(int64(time.Duration(float64(l.Total-l.Bytes)*8/l.Bps*float64(time.Second)).Round(time.Second))) + " left"
	}
	return unit.Size(l.Bytes) + " of " + unit.Size(l.Total) + ", " + unit.Rate(l.Bps) + left
}

// transfer returns the transfer that the flags describe, before connecting anything.
func (c *transferCmd) transfer(e *env) (*session.Transfer, error) {
	target, err := session.ParseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if end := target.EndPoint(); end != "" {
		c.EndPoint, c.ServerFolder = cmp.Or(c.EndPoint, end), cmp.Or(c.ServerFolder, path.Dir("/"+target.Path))
	}
	if err := c.sensible(); err != nil {
		return nil, err
	}
	if err := c.ours(e, target); err != nil {
		return nil, err
	}
	o := session.Options{
		Upload: c.Upload, From: c.From, To: c.To, Many: c.Many, Small: c.Small, Overwrite: c.Overwrite, Keep: c.Keep,
		Size: c.Size, NoCeiling: c.NoCeiling, NoChecksum: c.NoChecksum, Unread: c.Unread,
	}
	if c.Block > 0 && target.Protocol == "rsync" {
		return nil, fault.Usagef("leave it out", "--block does not go with rsync, which sends whole files in its own blocks")
	}
	return session.New(target, o, transfer.Config{
		Password: console.NewPasswords(e.Console, c.PasswordStdin).Of("", transfer.ErrLogin),
		Pin:      c.Pin, Insecure: c.Insecure, Key: c.Key, Buffer: int(c.Buffer), Block: int(c.Block), Timeout: c.Wait,
	})
}

// sensible refuses flags that do not go together.
func (c *transferCmd) sensible() error {
	generated := c.From == session.Generated || c.From == "" && c.Upload
	switch {
	case c.Upload && c.To != "":
		return fault.Usagef("leave it out: an upload goes to the file that the URL names", "--to does not go with --upload")
	case !c.Upload && c.From != "" && !generated:
		return fault.Usagef("add --upload, or leave --from out", "a download comes from the server")
	case c.Keep && !generated:
		return fault.Usagef("leave it out: thru creates and removes no file there", "--keep does not go with an existing file")
	case c.Size > 0 && !generated:
		return fault.Usagef("take generated data: --from generated", "--size does not go with an existing file")
	case c.Many < 1 || c.Many > mostClients:
		return fault.Usagef(fmt.Sprintf("--many takes 1 to %d", mostClients), "--many %d is out of range", c.Many)
	case c.Small < 0 || c.Small > mostSmall:
		return fault.Usagef(fmt.Sprintf("--small takes 1 to %d", mostSmall), "--small %d is out of range", c.Small)
	case c.Pin != "" && c.Insecure:
		return fault.Usagef("take one of them", "--pin and --insecure do not go together")
	case c.Many > 1 && (session.Options{To: c.To}).ToFile() != "":
		return fault.Usagef("take --to nowhere or --to memory", "--many does not go with --to FILE")
	case c.ServerFolder != "" && c.EndPoint == "":
		return fault.Usagef("name the agent at the server: --end-point NAME", "--server-folder needs an end point")
	case c.Wait < time.Second:
		return fault.Usagef("--timeout takes a second or more", "--timeout %s is too short", c.Wait)
	}
	return nil
}

// ours refuses flags that a protocol does not have.
func (c *transferCmd) ours(e *env, target session.URL) error {
	switch {
	case c.Key != "" && target.Protocol != "sftp" && target.Protocol != clients.Thru:
		return fault.Usagef("leave it out: a private key is for sftp://", "-i does not go with %s://", target.Protocol)
	case target.Protocol != clients.Thru:
		return nil
	}
	if these := e.TypedOf("--password-stdin", "-i", "--pin", "--insecure"); len(these) > 0 {
		return fault.Usagef("leave it out: the join string (thru join) gives access to the end point and pins its certificate", "%s does not go with thru://", these[0])
	}
	return nil
}

// network returns the plan for the path to the agent at the server; nil without an agent.
func (c *transferCmd) network(ends remote.Pair) (*plan.Plan, error) {
	if c.EndPoint == "" || c.EndPoint == control.Local {
		return nil, nil
	}
	r := plan.Request{Local: control.Local, Peer: ends.Peer.Name, Duration: c.Time, Interval: time.Second, Reverse: !c.Upload, OneWay: c.Upload, Streams: c.Many}
	var err error
	if r.Engine, err = remote.EngineOf(c.EndPoint); err != nil {
		return nil, err
	}
	p, err := plan.Test(withCPUs(r, ends.Local.Hello.CPUs, ends.PeerCPUs()))
	p.Command = "transfer"
	return &p, err
}
