//go:build vmlab

package vm

import ("testing";"context";"time")

func TestDbg(t *testing.T) {
	o := newOperator(t)
	v := o.boot(Spec{Name: "guest", Number: 11, NIC: E1000})[0]
	for _, line := range []string{"echo hi", "uname -r", "echo a; echo b", "uname -r; echo 01234567890123456789012345678901234567890123456789012345678901234567890123456789", "cat /proc/uptime", "free -m", "free -m | head -2"} {
		ctx, c := context.WithTimeout(context.Background(), 5*time.Second)
		out, err := v.Run(ctx, line)
		c()
		say("%q: %q %v", line, out, err)
		v.shell.conn.SetDeadline(time.Time{})
	}
}
