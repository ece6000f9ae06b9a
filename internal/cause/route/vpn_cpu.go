package route

import (
	"cmp"
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// VPNCPU is the cause `vpn-cpu`.
func VPNCPU() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "vpn-cpu", TCP: true, UDP: true, Title: "tunnel processing fills a CPU", Judge: judgeVPNCPU,
			Seen:        "a tunnel is on the route, and kernel work fills one CPU of that end while thru's own threads have time to spare",
			Distinction: "the same test outside the tunnel", Fix: "use encryption offload or several tunnels", Effect: "the rate of one core's encryption",
			Source: "proc(5), /proc/stat; ip-link(8)", Brings: []string{"sender-cpu", "receiver-cpu"},
		},
	}
}

func judgeVPNCPU(f *diagnose.Flow) *diagnose.Outcome {
	var o *diagnose.Outcome
	known := false
	for _, e := range f.Ends() {
		known = known || e.HasFace()
		if x := tunnelWork(e); x != nil && (o == nil || diagnose.Sureness(x) > diagnose.Sureness(o)) {
			o = x
		}
	}
	switch {
	case o != nil:
		return o
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case !known:
		return diagnose.Missing("interfaces of the route", "neither end reports them")
	}
	return diagnose.No("no tunnel is on the route of the ends")
}

// tunnelWork judges the CPUs of an end that reaches the other through a tunnel; nil if it does not.
func tunnelWork(e *diagnose.End) *diagnose.Outcome {
	if e.Face == nil || e.Face.Tunnel == nil {
		return nil
	}
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("how busy its CPUs were")
	}
	inKernel := func(c measure.CPU) float64 { return diagnose.Bounded(c.System + c.SoftIRQ) }
	c := slices.MaxFunc(e.Seen.Host.CPUs, func(a, b measure.CPU) int { return cmp.Compare(inKernel(a), inKernel(b)) })
	work := inKernel(c)
	if work < diagnose.ThreadBar {
		return diagnose.No("%s is a tunnel (%s), and kernel work fills no CPU: %s at most", diagnose.Word(e.Face.Name), diagnose.Word(e.Face.Tunnel.Kind), unit.Percent(work))
	}
	o := diagnose.Likely("kernel work fills CPU %d, and %s is a tunnel (%s): %s", c.Core, diagnose.Word(e.Face.Name), diagnose.Word(e.Face.Tunnel.Kind), unit.Percent(work)).
		At(e.OnCPU(c.Core)).By(diagnose.Above(e.Proof("system and softirq of that CPU", work, "pct"), diagnose.ThreadBar)).
		AddFix(diagnose.Advise(e, "use a NIC or CPU with encryption offload, use several tunnels, or send the traffic outside the tunnel"))
	if t, reported := e.Threads(); reported && t.Run+t.Wait > diagnose.ThreadBar {
		o.Confidence = measure.Possible // it may be that thread's own work
		o.MarkNotBinding()
	}
	return o
}
