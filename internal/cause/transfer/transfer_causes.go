package transfer

import (
	"thru/internal/cause/diagnose"
)

// Causes that only a file transfer has.
const (
	CauseDisk      = "disk"        // a disk is no faster
	CauseNetwork   = "network"     // what it carries from memory to memory is reached
	CauseClient    = "client"      // the program that moves the bytes is no faster
	CauseCipher    = "cipher-cpu"  // one stream's cipher takes a whole CPU
	CauseRoundTrip = "round-trips" // the protocol waits for answers: requests in flight / RTT
)

// TransferCauses are what a file transfer can hang on beside the causes of a flow,
// for docs/causes.md: Transfer judges them by the layers that were measured.
func TransferCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: CauseDisk, Title: "a disk is no faster",
			Seen:   "here: the disk's own rate is reached (85 to 125%), or with the file it is slower than without and the client waits for the file for 30% of the time, while CPUs are free; at the server: 85 to 125% of what its disk carries by thru disk",
			Apart:  "a transfer to and from memory, which has no disk of this end; one that carries more than the disk comes out of the server's memory",
			Mends:  "none in the network: a faster disk, or more transfers at once where one file does not fill it",
			Effect: "38 of 918 Mb/s by http to a disk of 5 MB/s", Source: "C-13, C-38, C-44; transfer.md",
		},
		{
			Cause: CauseNetwork, Title: "the network carries no more",
			Seen:  "85 to 125% of what thru's own data plane carries from memory to memory, by as many streams as there are clients",
			Apart: "the test of the network names what holds it, which stands instead of this where it is known",
			Mends: "thru explain END POINT", Effect: "the whole rate", Source: "transfer.md",
		},
		{
			Cause: CauseClient, Title: "the program that moves the bytes is no faster",
			Seen:  "85 to 125% of what the same client reaches against a server on this machine; or this process keeps a CPU busy for each client, without a cipher",
			Apart: "several at once carry more where there are CPUs",
			Mends: "--many; without SHA-256 (--no-checksum)", Effect: "one CPU of the client", Source: "transfer.md",
		},
		{
			Cause: CauseCipher, Title: "one stream's cipher takes a whole CPU",
			Seen:   "sftp, ftps and https: this process, or the server's, keeps a CPU busy (85%) for each client",
			Apart:  "the same without a cipher (http, ftp), or two at once",
			Mends:  "several transfers at once, AES-GCM on a CPU that has instructions for it, no cipher on a trusted path",
			Effect: "3.3 Gb/s by sftp where 5.3 pass by http", Source: "C-44; transfer.md",
		},
		{
			Cause: CauseRoundTrip, Title: "the protocol waits for answers",
			Seen:   "sftp, smb and nfs on a way of 1 ms or more: the rate is 60 to 130% of the requests in flight x 8 / RTT",
			Apart:  "the network carries more from memory to memory; several at once carry more in proportion; a protocol that streams has no such bound",
			Mends:  "larger blocks, more of them in flight, several transfers at once, a protocol that streams",
			Effect: "64 x 4 KiB over 20 ms: 88 of 191 Mb/s", Source: "C-41, C-42; transfer.md",
		},
	}
}
