package cli

import (
	"thru/internal/transfer"
	"thru/internal/transfer/smb"
)

// transferClient makes the client of one protocol.
type transferClient struct {
	name string
	make func(transfer.Config) transfer.Client
}

// transferClients are all protocols that files are moved by.
func transferClients() []transferClient {
	return []transferClient{
		{"smb", func(c transfer.Config) transfer.Client { return smb.New(c) }},
	}
}

// checkTransferName refuses names that could mean another file than they say.
func checkTransferName(name string) error { return transfer.CheckName(name) }
