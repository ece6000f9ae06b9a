package host

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rules counts nftables tables, chains and rules of all families, including
// those of iptables-nft. It needs CAP_NET_ADMIN.
func (live) rules() (ruleset, error) {
	var s ruleset
	var err error
	for range 3 { // the rules may change while they are listed
		s = ruleset{}
		if err = s.read(); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return s, err
}

// read adds all tables, chains and rules.
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

// eachOf lists one kind of nftables object. It takes answers one by one,
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

// entries requests the size of an iptables table that is in use; a request
// for another table would create it. IPT_SO_GET_INFO and IP6T_SO_GET_INFO
// have the same number.
func (live) entries(table string) (int, error) {
	const getInfo = 64
	family, level := unix.AF_INET, unix.SOL_IP
	version, name, _ := strings.Cut(table, " ")
	if version == "ip6" {
		family, level = unix.AF_INET6, unix.SOL_IPV6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("iptables: %w", err)
	}
	defer unix.Close(fd)
	var info [sizeofTableInfo]byte
	copy(info[:31], name)
	length := uint32(len(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), getInfo,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	if e != 0 {
		return 0, fmt.Errorf("iptables: table %s: %w", table, e)
	}
	return parseTableInfo(info[:])
}
