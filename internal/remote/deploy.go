package remote

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/unit"
)

// deployFolder is where thru is put on the hosts.
const deployFolder = "/usr/local/bin"

// deployTime limits an installation: a start waits until the service is ready.
const deployTime = 3 * time.Minute

//go:embed deployfar.sh
var deployFar string

// Site is a host over ssh that may get thru as a service. Nothing is changed there before Install or Undo.
type Site struct {
	Name      string
	System    string // such as linux/amd64
	Has       string // version of the thru there; empty: none
	Same      bool   // it is this program
	Installed bool   // the service is

	box parcel
	ssh *sshProcess
}

// Survey logs in at a host, and reads what is there.
func (d Dialer) Survey(ctx context.Context, name string) (*Site, error) {
	return d.survey(ctx, name, deployFolder)
}

func (d Dialer) survey(ctx context.Context, name, folder string) (*Site, error) {
	if !strings.HasPrefix(name, "ssh://") {
		name = "ssh://" + name
	}
	destination, port, err := SSHTarget(name)
	if err != nil {
		return nil, err
	}
	if d.person.Asks() != nil { // one at a time may ask the user
		d.asking.Lock()
		defer d.asking.Unlock()
	}
	s, err := startSSH(d.person.Asks(), destination, port)
	if err != nil {
		return nil, err
	}
	site := &Site{Name: destination, ssh: s}
	if err := site.read(ctx, d, folder); err != nil {
		s.close()
		return nil, err
	}
	return site, nil
}

// read sends the script, and reads its report.
func (x *Site) read(ctx context.Context, d Dialer, folder string) error {
	defer x.ssh.killOn(ctx)()
	far, err := x.ssh.greeting()
	if err != nil {
		return err
	}
	if x.System = far.os + "/" + far.arch; far.os == "esxi" {
		return fault.Failf("leave it out; thru test ssh://"+x.Name+" measures with it", "remote: %s is an ESXi host: thru does not run on it", x.Name)
	}
	if x.box, err = d.parcels.of(far); err != nil {
		return err
	}
	script := strings.NewReplacer("MARK", x.ssh.mark, "FOLDER", folder).Replace(deployFar)
	if _, err := fmt.Fprintf(x.ssh.in, farScript+"%s", len(script), script); err != nil {
		return x.ssh.explain("reading the host", err)
	}
	rest, err := x.ssh.expect("state", "reading the host", sshAnswerTime)
	if err != nil {
		return err
	}
	w := strings.Fields(fault.Printable(rest))
	if len(w) < 3 {
		return fmt.Errorf("remote: %s: reading the host: unexpected answer %.60q", x.Name, rest)
	}
	if w[0] != "yes" {
		return fault.Failf("log in as root, or let the user run sudo without a password", "remote: %s: the service needs root there", x.Name)
	}
	x.Installed, x.Same, x.Has = w[1] == "yes", w[2] == fmt.Sprintf("%x", x.box.sum), strings.Join(w[3:], " ")
	return nil
}

// Plan says what Install would do.
func (x *Site) Plan(version string) string {
	copies := fmt.Sprintf("copy thru %s (%s) to %s", version, unit.Size(x.box.size), deployFolder)
	switch {
	case x.Same:
		copies = "keep " + x.Has
	case x.Has != "":
		copies += " in place of " + x.Has
	}
	if x.Installed {
		return copies + ", change the service"
	}
	return copies + ", install the service"
}

// Install copies thru and installs the service, which serves under the controller of the join string with these flags.
func (x *Site) Install(ctx context.Context, join string, flags []string) error {
	body, coding := x.box.body, x.box.coding
	if x.Same {
		body, coding = nil, "none"
	}
	if err := x.order(ctx, fmt.Sprintf("install %d %d %x %s", len(body), x.box.size, x.box.sum, coding)); err != nil {
		return err
	}
	if _, err := x.ssh.expect("send", "installing", sshAnswerTime); err != nil {
		return err
	}
	_, err := fmt.Fprintf(x.ssh.in, "%s\n%s\n", strings.Join(unit.Mapped(flags, doc.Quote), " "), join)
	if err == nil {
		_, err = x.ssh.in.Write(body)
	}
	if err != nil {
		return x.ssh.explain("copying thru there", err)
	}
	return x.finished("installing")
}

// Undo removes the service, and the program if Install put it there; one from before comes back.
func (x *Site) Undo(ctx context.Context) error {
	if err := x.order(ctx, "undo"); err != nil {
		return err
	}
	return x.finished("removing")
}

// order tells the script what to do.
func (x *Site) order(ctx context.Context, line string) error {
	x.ssh.killOn(ctx)
	if _, err := fmt.Fprintln(x.ssh.in, line); err != nil {
		return x.ssh.explain("ordering", err)
	}
	return nil
}

// finished waits for the end of the script.
func (x *Site) finished(doing string) error {
	_, err := x.ssh.expect("done", doing, deployTime)
	return err
}

// Close ends the connection.
func (x *Site) Close() { x.ssh.close() }
