//go:build vmlab

package vm

import (
	"fmt"
	"strings"
	"testing"

	"thru/internal/measure"
)

func TestSmoke(t *testing.T) {
	for i, nic := range []string{E1000, E1000E, VMXNET3, Virtio} {
		o := newOperator(t)
		v := o.boot(Spec{Name: "guest", Number: 11 + i, NIC: nic})[0]
		say("%s", o.run(v, "free -m | head -2; uname -r; cat /proc/uptime"))
		d := o.measure("test", "guest", "-t", "3", "--force")
		for _, from := range []string{"local", "guest"} {
			c := base(t, d, from)
			var f []string
			for _, x := range c.Findings {
				f = append(f, x.Cause+"@"+x.Where.Place+"/"+x.Confidence+"<"+x.BecauseOf)
			}
			say("%s from %s: %.0f Mb/s sender %s receiver %s: %s", nic, from, c.Goodput.Value/1e6, cpu(c.SenderCPU), cpu(c.ReceiverCPU), strings.Join(f, " "))
		}
		o.close(v)
	}
}

func cpu(c *measure.CPUFigure) string {
	if c == nil || c.PctPerGbps == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%% busiest %.0f%%, %.0f%%/Gb/s", c.Pct, c.MaxCorePct, *c.PctPerGbps)
}
