package option

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Default is the word for the system's default.
const Default = "default"

// parsed returns a value that parse converts.
func parsed[T any](like string, parse func(string) (T, error), set func(*plan.Request, T)) Value {
	return Value{Like: like, Set: func(r *plan.Request, s string) error {
		v, err := parse(s)
		if err == nil {
			set(r, v)
		}
		return err
	}}
}

func text(like string, place func(*plan.Request) *string) Value {
	return parsed(like, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("empty")
		}
		return s, nil
	}, func(r *plan.Request, s string) { *place(r) = s })
}

func truth(place func(*plan.Request) *bool) Value {
	v := parsed("true", strconv.ParseBool, func(r *plan.Request, b bool) { *place(r) = b })
	v.Kind = Truth
	return v
}

func whole[T int | int64](least, most T, place func(*plan.Request) *T) Value {
	return Value{Kind: Whole, Range: fmt.Sprintf("%d to %d", least, most), Set: func(r *plan.Request, s string) error {
		n, err := strconv.ParseInt(s, 10, 48)
		if err != nil || T(n) < least || T(n) > most {
			return fmt.Errorf("not a whole number from %d to %d", least, most)
		}
		*place(r) = T(n)
		return nil
	}}
}

// oneOf returns a value that is one of the allowed words.
func oneOf(set func(*plan.Request, string), allowed ...string) Value {
	return Value{Kind: Word, Words: allowed, Like: allowed[0], Set: func(r *plan.Request, s string) error {
		if !slices.Contains(allowed, s) {
			return errors.New("unknown value")
		}
		set(r, s)
		return nil
	}}
}

func words(place func(*plan.Request) *string, allowed ...string) Value {
	return oneOf(func(r *plan.Request, s string) { *place(r) = s }, allowed...)
}

func kind() Value {
	return oneOf(func(r *plan.Request, s string) { r.Traffic = strings.TrimPrefix(s, "bulk") }, "bulk", measure.RR, measure.CRR)
}

func direction() Value {
	return oneOf(func(r *plan.Request, s string) {
		r.OneWay, r.Reverse, r.Bidir = s == plan.Forward, s == plan.Reverse, s == plan.Bidir
	}, plan.Forward, plan.Reverse, plan.BothDirections, plan.Bidir)
}

func family() Value {
	v := oneOf(func(r *plan.Request, s string) { r.Family, _ = strconv.Atoi(s) }, "4", "6")
	v.Kind = Whole
	return v
}

// dataPath parses a data path. If a host does not support sendfile or lean, the test falls back to another
// path.
func dataPath() Value {
	return oneOf(func(r *plan.Request, s string) { r.IO, r.IOForced = s, s != measure.IOSendfile && s != measure.IOLean },
		measure.IOCopy, measure.IOSendfile, measure.IOLean, measure.IOGSO, measure.IOBatch, measure.IOPortable)
}

// forcedPath is dataPath without a fallback.
func forcedPath(r *plan.Request, s string) error {
	err := dataPath().Set(r, s)
	r.IOForced = true
	return err
}

// boundedTime parses a time within limits.
func boundedTime(like string, least, most time.Duration, set func(*plan.Request, time.Duration)) Value {
	v := parsed(like, func(s string) (time.Duration, error) {
		d, err := unit.ParseDuration(s)
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("%v is not %v to %v", d, least, most)
		}
		return d, err
	}, set)
	v.Range = fmt.Sprintf("%v to %v seconds", least.Seconds(), most.Seconds())
	return v
}

// interval parses the interval of the figures; 0 is for none.
func interval(most time.Duration) Value {
	return parsed("1 or 0.5", func(s string) (time.Duration, error) {
		d, err := unit.ParseDuration(s)
		if err == nil && d != 0 && (d < measure.MinInterval || d > most) {
			err = fmt.Errorf("it takes 0.1 to %v seconds, or 0 for no reports", most.Seconds())
		}
		return d, err
	}, func(r *plan.Request, d time.Duration) { r.Interval = d })
}

// sizes parses SIZE, SENDER/RECEIVER, or default.
func sizes(like string, most int64, place func(*plan.Request) *measure.Pair) Value {
	v := parsed(like, func(s string) (p measure.Pair, err error) {
		if s == Default {
			return p, nil
		}
		p.Send, p.Recv, err = unit.ParseSizePair(s)
		switch {
		case err != nil:
		case p.Send == 0 || p.Recv == 0:
			err = errors.New("zero is not a size; " + Default + " leaves it to the system")
		case max(p.Send, p.Recv) > most:
			err = fmt.Errorf("more than %s", unit.Size(most))
		}
		return p, err
	}, func(r *plan.Request, p measure.Pair) { *place(r) = p })
	v.Range = fmt.Sprintf("up to %dM", most>>20)
	return v
}

// leastLink is a rate in bit/s below that of any link: a lower value lacks a suffix.
const leastLink = 9600

func link() Value {
	return parsed("10G, 2.5G or 1G/l2", func(s string) (l plan.Link, err error) {
		if strings.ContainsAny(s, ",=") {
			return l, fault.Usagef("state one rate, such as 10G; RUNG=RATE,RUNG=RATE is for a ladder of several rungs", "a path has one rate")
		}
		if l.RateBps, l.Layer, err = unit.ParseLinkRate(s); err == nil && l.RateBps < leastLink {
			err = fmt.Errorf("%d bit/s is less than any link has", l.RateBps)
		}
		return l, err
	}, func(r *plan.Request, l plan.Link) { r.Link = l })
}

// Positive refuses zero, which an unset shell variable gives.
func Positive[T ~int64](parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		n, err := parse(s)
		if err == nil && n <= 0 {
			err = errors.New("it must be above 0")
		}
		return n, err
	}
}

func count(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil {
		err = errors.New("not a whole number")
	}
	return n, err
}

func perSecond(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n <= measure.MaxPerSecond) {
		err = fmt.Errorf("not above 0 and up to %d a second", measure.MaxPerSecond)
	}
	return n, err
}

// mostPrecision is a share of the mean, in percent: a wider interval has no use.
const mostPrecision = 50

func share(s string) (float64, error) {
	pct, err := unit.ParsePercent(s)
	if err == nil && !(pct > 0 && pct <= mostPrecision) {
		err = fmt.Errorf("not above 0 and up to %d%%", mostPrecision)
	}
	return pct, err
}

// mostCongestion is the longest name of a congestion control in Linux (TCP_CA_NAME_MAX, tcp.h).
const mostCongestion = 15

func congestion(s string) (string, error) {
	if s == Default {
		return "", nil
	}
	if s == "" || len(s) > mostCongestion || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("not the name of an algorithm")
	}
	return s, nil
}

// localCPU parses N or N,M, the CPU of the local end and of the peer, or off.
func localCPU(r *plan.Request, s string) error {
	r.Unplaced, r.LocalCPU, r.PeerCPU = s == "off", nil, nil
	if r.Unplaced {
		return nil
	}
	first, second, both := strings.Cut(s, ",")
	var err error
	if r.LocalCPU, err = cpu(first); err == nil && both {
		r.PeerCPU, err = cpu(second)
	}
	return err
}

func cpu(s string) (*int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 10)
	if err != nil {
		return nil, errors.New("not a CPU number from 0 to 1023")
	}
	return new(int(n)), nil
}

// bothCPUs parses off, one CPU for both ends, or FROM,TO.
func bothCPUs(r *plan.Request, s string) error {
	err := localCPU(r, s)
	if r.PeerCPU == nil {
		r.PeerCPU = r.LocalCPU
	}
	return err
}
