package cli

import (
	"thru/internal/transfer"
	"thru/internal/transfer/ftp"
	"thru/internal/transfer/nfs"
	"thru/internal/transfer/sftp"
	"thru/internal/transfer/smb"
	"thru/internal/transfer/web"
)

// transferClient makes the client of one protocol.
type transferClient struct {
	name string
	make func(transfer.Config) transfer.Client
}

// transferClients are all protocols that files are moved by.
func transferClients() []transferClient {
	of := func(make func(string, transfer.Config) transfer.Client, name string) transferClient {
		return transferClient{name, func(c transfer.Config) transfer.Client { return make(name, c) }}
	}
	return []transferClient{
		of(ftp.New, "ftp"), of(ftp.New, "ftps"), of(web.New, "http"), of(web.New, "https"),
		{"sftp", sftp.New},
		{"smb", func(c transfer.Config) transfer.Client { return smb.New(c) }},
		{"nfs", func(c transfer.Config) transfer.Client { return nfs.New(c) }},
	}
}

// checkTransferName refuses names that could mean another file than they say.
func checkTransferName(name string) error { return transfer.CheckName(name) }
