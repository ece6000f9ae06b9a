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
	var s ruleset
	var err error
	for range 3 { // somebody may change the rules while they are listed
		s = ruleset{}
		if err = s.read(); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return s, err
}

// read adds all that there is.
func (s *ruleset) read() error {
	table := func([]byte) error { s.tables++; return nil }
	for _, list := range []struct {
		ask  int
		take func([]byte) error
	}{{unix.NFT_MSG_GETTABLE, table}, {unix.NFT_MSG_GETCHAIN, s.chain}, {unix.NFT_MSG_GETRULE, s.rule}} {
		if err := eachOf(list.ask, list.take); err != nil {
			return err
		}
	}
	return nil
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
