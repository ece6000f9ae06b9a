package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
)

// TestSecretsStayInside checks that secrets of a command line are in no document and no message.
func TestSecretsStayInside(t *testing.T) {
	join := bus.Join{Name: "fleet", Control: []string{"10.0.0.1:5200"}, Secret: bus.Secret(strings.Repeat("s", 43)), Privilege: bus.PrivilegeAgent}.String()
	half := len(join) / 2
	for _, secret := range []string{
		join, " " + join + "\n", join[:half] + "\n" + join[half:], join[8:],
		"nats://me:hunter2@nats:4222", "tls://hunter2@nats", "nats://me:hunter/2@nats", "me:hunter2@nats:4222", "ftp://u:a/hunter2@h/f", "smb://u:1/hunter2@h/f", "nfs4://u:1/hunter2@h/f", "vsphere://u:hunter2@vc", "vsphere://u%3Ahunter2@vc", "vsphere://u%3ahunter2@x@vc", "vsphere://u@vc?password=hunter2", "vsphere://u@vc/#hunter2", "vsphere://u@corp.example:hunter/2@vc", "--nats=me:hunter2@h",
		"postgres://ann:hunter2@db/x", "postgresql://ann:a/hunter2@db:5432/x", "postgres://ann@db/x?password=hunter2&sslmode=require", "postgres://db/x?sslmode=require&sslpassword=hunter2",
		"SUAM" + strings.Repeat("HUNTER2", 8),
	} {
		var out, errw bytes.Buffer
		e := &env{Console: &console.Console{Out: &out, Err: &errw, Args: []string{"serve", "--controller", secret, "--json"}}}
		e.printError(fault.Usagef("not "+secret, "%q is none; nor is %s", secret, secret))
		for _, part := range []string{strings.TrimSpace(secret), join[20:half], join[half : len(join)-20], "hunter", "HUNTER"} {
			if strings.Contains(out.String(), part) || strings.Contains(errw.String(), part) {
				t.Errorf("of %q is told:\n%s\n%s", secret, &out, &errw)
			}
		}
	}
	for _, text := range []string{
		"ssh://root@10.0.0.1:22,ssh://root@10.0.0.2", "thru report /home/me/20261122-151300-plan/document.json", "root@[fd00::1]:5200", "cli: a:b: no",
		"certificate sha256:" + strings.Repeat("0a", 32) + " is kept", "ssh://a:22,ssh://root@b", "nats://10.0.0.1:4222,tls://b",
		"sftp://anna@h:22/a/b", "vsphere://anna@corp.example@vc:443", "http://h:80/a%40b", "smb://anna@h/share/a", "postgres://ann@db:5432/thru?sslmode=verify-full",
	} {
		if got := fault.Unsecret(text); got != text {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}

// TestHangUp: a closed terminal sends one or more signals, and the command ends in order.
func TestHangUp(t *testing.T) {
	signals := make(chan os.Signal, 3)
	for range 3 {
		signals <- syscall.SIGHUP
	}
	code := untilTwice(signals, func(ctx context.Context) int {
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // cleaning up
		if !errors.Is(ctx.Err(), context.Canceled) {
			return 9
		}
		return 7
	})
	if code != 7 {
		t.Errorf("it ended with %d", code)
	}
}
