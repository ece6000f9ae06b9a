package host

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rules counts tables, chains and rules of nftables, of all families. The
// rules of iptables-nft are among them. Only who may administer the network
// is answered.
func (live) rules() (ruleset, error) {
	var err error
	for range 3 { // somebody may change the rules while they are listed
		var s ruleset
		err = errors.Join(
			eachOf(unix.NFT_MSG_GETTABLE, func([]byte) error { s.tables++; return nil }),
			eachOf(unix.NFT_MSG_GETCHAIN, s.chain),
			eachOf(unix.NFT_MSG_GETRULE, s.rule),
		)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return ruleset{}, err
}

// eachOf lists one kind of object of nftables. Answers are taken one by one,
// since a host may have some 100 000 rules.
func eachOf(ask int, take func([]byte) error) error {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|ask, unix.NLM_F_DUMP)
	req.AddData(nfnetlink{})
	var bad error
	err := req.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(b []byte) bool {
		bad = take(b)
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return nil
}
