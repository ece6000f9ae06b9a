package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// RequireVariable names the environment variable that turns a skipped lab
// test into a failed one.
const RequireVariable = "THRU_REQUIRE_LAB"

// Need is a requirement of a test.
type Need struct {
	name  string
	check func() error
}

// Require skips the test with the reason if a need is not met, or fails it if THRU_REQUIRE_LAB=1 declares
// that this machine must meet it.
func Require(t testing.TB, needs ...Need) {
	t.Helper()
	for _, n := range needs {
		err := n.check()
		if err == nil {
			continue
		}
		if os.Getenv(RequireVariable) == "1" {
			t.Fatalf("lab: %s is required here (%s=1): %v", n.name, RequireVariable, err)
		}
		t.Skipf("needs %s: %v", n.name, err)
	}
}

// Root is the need for root privileges.
func Root() Need {
	return Need{"root", func() error {
		if uid := os.Geteuid(); uid != 0 {
			return fmt.Errorf("running as user %d", uid)
		}
		return nil
	}}
}

// Program is the need for a program in PATH.
func Program(name string) Need {
	return Need{"the program " + name, func() error {
		_, err := exec.LookPath(name)
		return err
	}}
}

// Namespaces is the need for a kernel that allows network namespaces joined by veth, and shaping: in a
// container without CAP_NET_ADMIN or CAP_SYS_ADMIN root may not create them.
func Namespaces() Need {
	return Need{"network namespaces", func() (err error) {
		if runtime.GOOS != "linux" {
			return errors.New("this is " + runtime.GOOS + ", not Linux")
		}
		name := newPrefix() + "probe"
		if _, err := run("ip", "netns", "add", name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeNamespace(name)) }()
		if _, err := run("ip", "-netns", name, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"); err != nil {
			return err
		}
		_, err = run("tc", "-netns", name, "qdisc", "add", "dev", "probe0", "root", "tbf",
			"rate", "1gbit", "burst", "256kb", "limit", "1mb")
		return err
	}}
}
