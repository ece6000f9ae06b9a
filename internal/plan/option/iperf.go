package option

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Values that iperf3 parses differently from thru.

// leadingCPUs parses the leading numbers and ignores the rest: -A 1/1 is -A 1.
func leadingCPUs(r *plan.Request, s string) error {
	if n := strings.IndexFunc(s, func(r rune) bool { return r != ',' && (r < '0' || r > '9') }); n > 0 {
		s = s[:n]
	}
	return localCPU(r, s)
}

func addressAndDevice(r *plan.Request, s string) error {
	addr, dev, _ := strings.Cut(s, "%")
	r.BindAddr, r.BindDev = addr, cmp.Or(dev, r.BindDev)
	return nil
}

func evenRate(r *plan.Request, s string) (err error) {
	if strings.Contains(s, "/") {
		return errors.New("leave /N out: thru sends evenly, not in bursts")
	}
	r.Rate, err = unit.ParseRate(s)
	r.RateSet = true
	return err
}

// endless parses a time; 0 is the longest time allowed.
func endless(r *plan.Request, s string) (err error) {
	r.Duration, err = unit.ParseDuration(s)
	r.Duration = cmp.Or(r.Duration, measure.MaxDuration)
	return err
}

// manyBlocks accepts suffixes: 1K is 1024 blocks.
func manyBlocks(r *plan.Request, s string) (err error) {
	r.Blocks, err = Positive(unit.ParseSize)(s)
	return err
}

// oneSize sets both ends to the same size; 0 is the default.
func oneSize(place func(*plan.Request) *measure.Pair) func(*plan.Request, string) error {
	return func(r *plan.Request, s string) error {
		n, err := unit.ParseSize(s)
		*place(r) = measure.Pair{Send: n, Recv: n}
		return err
	}
}

func typeOfService(r *plan.Request, s string) error {
	n, err := strconv.ParseUint(s, 0, 8)
	switch {
	case err != nil:
		return errors.New("it takes 0 to 255")
	case n&3 != 0:
		return errors.New("its lowest two bits are ECN's, which the kernel sets")
	}
	r.DSCP = int(n >> 2)
	return nil
}
