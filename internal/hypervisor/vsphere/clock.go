package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// clockNoted is the least difference of a clock that is reported.
const clockNoted = time.Second

// clock is the offset of another machine's clock from ours.
type clock struct {
	ahead time.Duration // relative to ours
	bound time.Duration // error limit of ahead
}

// readClock reads a clock twice and uses the faster answer: the clock was
// read between request and answer.
func readClock(now func() time.Time, ask func() (time.Time, error)) (clock, error) {
	var best clock
	for i := range 2 {
		sent := now()
		reply, err := ask()
		if err != nil {
			return clock{}, err
		}
		half := now().Sub(sent) / 2
		c := clock{ahead: reply.Sub(sent.Add(half)), bound: half}
		if reply.Nanosecond() == 0 { // whole seconds, truncated
			c.ahead, c.bound = c.ahead+time.Second/2, c.bound+time.Second/2
		}
		if i == 0 || c.bound < best.bound {
			best = c
		}
	}
	return best, nil
}

// sourceClock reads the clock of the connected vCenter or ESXi host.
func (c *Client) sourceClock(ctx context.Context, now func() time.Time) (clock, error) {
	return readClock(now, func() (time.Time, error) {
		reply, err := ask(ctx, c, methods.GetCurrentTime)
		if err != nil {
			return time.Time{}, err
		}
		return *reply, nil
	})
}

// hostClock reads the clock of an ESXi host, by its HostDateTimeSystem.
func (c *Client) hostClock(ctx context.Context, system types.ManagedObjectReference, now func() time.Time) (clock, error) {
	return readClock(now, func() (time.Time, error) {
		reply, err := ask(ctx, c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryDateTimeResponse, error) {
			return methods.QueryDateTime(ctx, vc, &types.QueryDateTime{This: system})
		})
		if err != nil {
			return time.Time{}, err
		}
		return reply.Returnval, nil
	})
}

// words reports a clock's difference; ok is false where there is none.
func (c clock) words(whose, then string) (n measure.NotChecked, ok bool) {
	if c.ahead.Abs() <= clockNoted+c.bound {
		return measure.NotChecked{}, false
	}
	to := "ahead of"
	if c.ahead < 0 {
		to = "behind"
	}
	return measure.NotChecked{
		Fact: "clock of " + whose,
		Why:  fmt.Sprintf("it is %s (±%s) %s the local clock: %s", seconds(c.ahead.Abs()), seconds(c.bound), to, then),
	}, true
}

// stepped reports that a clock was set, or ran away, between two readings.
func (c clock) stepped(before clock, whose string) (n measure.NotChecked, ok bool) {
	by := c.ahead - before.ahead
	if by.Abs() <= clockNoted+c.bound+before.bound {
		return measure.NotChecked{}, false
	}
	return measure.NotChecked{
		Fact: "clock of " + whose,
		Why:  fmt.Sprintf("it moved by %s against the local clock during the test: the times of its samples are uncertain by that", seconds(by.Abs())),
	}, true
}

// seconds formats a time in the unit of counters and clocks.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
