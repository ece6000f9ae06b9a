package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/fault"
)

// iperfFlags let iperf clients measure with this host.
type iperfFlags struct {
	IPerf      bool   `name:"iperf" help:"Also answer iperf3 and iperf2 clients, several at once; the result of each test is stored. Implied by --no-auth."`
	IPerf3Port int    `name:"iperf3-port" default:"5201" placeholder:"PORT" help:"TCP and UDP port for iperf3 clients (default 5201); 0 for none."`
	IPerf2Port int    `name:"iperf2-port" default:"5001" placeholder:"PORT" help:"TCP and UDP port for iperf2 clients (default 5001); 0 for none."`
	Results    string `name:"results" type:"path" placeholder:"DIR" help:"Folder for their results, the newest 1000 (default: results in the state folder)."`
	iperfLogin
}

// iperfLogin names the users of iperf3's login, with iperf3's names.
type iperfLogin struct {
	Users      string `name:"authorized-users-path" type:"path" placeholder:"FILE" help:"iperf3's file of users: its clients must log in; iperf2's, which cannot, are not answered."`
	PrivateKey string `name:"rsa-private-key-path" type:"path" placeholder:"FILE" help:"Private RSA key that decrypts their logins."`
	PKCS1      bool   `name:"use-pkcs1-padding" help:"Logins use the padding of iperf3 before 3.17."`
	Skew       int    `name:"time-skew-threshold" default:"10" placeholder:"SECONDS" help:"Largest clock difference of a login."`
}

// files returns the function that configures the agent's folders for disk tests and transfers.
func (c *serveCmd) files() (func(*agent.Config), error) {
	allowed := slices.Contains(c.Allow, bus.PrivilegeFiles)
	switch {
	case allowed && len(c.Files) == 0:
		return nil, fault.Usagef("name the folders for measurements of disks and for transfers: --files DIR", "--allow files needs a folder")
	case !allowed && len(c.Files) > 0:
		return nil, fault.Usagef("thru serve --allow files --files "+c.Files[0], "--files needs --allow files")
	}
	f := agent.Files{MaxBytes: c.MaxFile}
	for _, name := range c.Files {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("cli: --files %s: %w", name, err)
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", dir)
		}
		if err != nil {
			return nil, fault.Usagef("--files takes existing folders", "--files: %w", err)
		}
		f.Folders = append(f.Folders, dir)
	}
	return func(a *agent.Config) { a.Files = f }, nil
}
