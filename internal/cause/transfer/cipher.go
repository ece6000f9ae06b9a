package transfer

import (
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Cipher is the cause `cipher-cpu`.
func Cipher() diagnose.Rule {
	return diagnose.Rule{
		Cause: causeCipher, Title: "one stream's cipher takes a whole CPU",
		Seen:        "sftp, ftps and https: this process, or the server's, keeps a CPU busy (85%) for each client",
		Distinction: "the same transfer without a cipher (http, ftp), or two at once",
		Fix:         "run several transfers at once; use AES-GCM on a CPU with instructions for it, or no cipher on a trusted path",
		Effect:      "3.3 Gb/s with sftp, where http carries 5.3", Source: "C-44; transfer.md",
	}
}

// cipher holds if this process keeps a whole CPU busy for each stream.
func (c *scene) cipher() *bound {
	cpu := c.run.HereCPU
	if isBusy(cpu) {
		return c.busyHere(c.run)
	}
	if cpu == nil || cpu.WorkerCores == nil || *cpu.WorkerCores < busyCores*float64(c.clients()) {
		return nil
	}
	p := diagnose.Above(c.proof("CPU cores used by this process", *cpu.WorkerCores, ""), busyCores)
	if c.encrypted() {
		o := binds(causeCipher, measure.Likely, "one stream's cipher and protocol take a whole CPU here")
		o.At(c.here()).By(p).Then("run two at once (--many 2): they carry more")
		o.AddFix(&measure.Fix{EndPoint: "local", Advice: "run several transfers at once, use a cipher that the CPU has instructions for (AES-GCM), or use a protocol without a cipher on a trusted path"})
		return o
	}
	o := binds(causeClient, measure.Likely, "the client takes a whole CPU here")
	o.At(c.here()).By(p).Then("run two at once (--many 2): they carry more")
	return o
}

// encrypted reports whether the protocol encrypts a stream's bytes on one CPU.
func (c *scene) encrypted() bool {
	return slices.Contains([]string{"https", "ftps", "sftp"}, c.t.Protocol)
}
