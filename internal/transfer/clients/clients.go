// Package clients is the table of file protocols, with the constructor of
// each client. It is the only package that knows them all.
package clients

import (
	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/ftp"
	"thru/internal/transfer/nfs"
	"thru/internal/transfer/rsync"
	"thru/internal/transfer/sftp"
	"thru/internal/transfer/smb"
	"thru/internal/transfer/web"
)

// Thru is the scheme of thru's own data plane. Its port is that of the
// agent's control plane.
const Thru = "thru"

// Protocol is one row of the table.
type Protocol struct {
	Name string                                // scheme of the URL
	Port string                                // default port of its servers
	Safe bool                                  // password and data are encrypted
	New  func(transfer.Config) transfer.Client // nil: it needs an agent's client (own.End)
}

// All returns all protocols, in the order of the manual.
func All() []Protocol {
	return []Protocol{
		{"http", "80", false, func(c transfer.Config) transfer.Client { return web.New("http", c) }},
		{"https", "443", true, func(c transfer.Config) transfer.Client { return web.New("https", c) }},
		{"ftp", "21", false, func(c transfer.Config) transfer.Client { return ftp.New("ftp", c) }},
		{"ftps", "21", true, func(c transfer.Config) transfer.Client { return ftp.New("ftps", c) }},
		{"sftp", "22", true, sftp.New},
		{"smb", "445", false, smb.New},
		{"nfs", "2049", false, nfs.New},
		{"nfs4", "2049", false, nfs.NewFour},
		{"rsync", "873", false, rsync.New},
		{Thru, "5200", false, nil},
	}
}

// Of returns the protocol of a URL's scheme.
func Of(scheme string) (Protocol, error) {
	var names []string
	for _, p := range All() {
		if p.Name == scheme {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "see the protocols in `thru transfer --help`"
	if near := fault.Nearest(scheme, names); near != "" {
		hint = "did you mean " + near + "://?"
	}
	return Protocol{}, fault.Usagef(hint, "transfer: unknown protocol %.40q", scheme)
}
