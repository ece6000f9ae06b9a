package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// ruleset holds counts of the nftables rules.
type ruleset struct {
	tables, bases int
	rules         map[string]int // of each chain: "2 filter input"
	tracks        bool           // a rule uses connection tracking, or a chain translates addresses
}

// Attributes of nftables (include/uapi/linux/netfilter/nf_tables.h).
const (
	sizeofNfgenmsg = 4
	nftaChainHook  = 4
	nftaChainType  = 7
	nftaRuleTable  = 1
	nftaRuleChain  = 2
	nftaRuleExprs  = 4
	nftaListElem   = 1
	nftaExprName   = 1
	nftaExprData   = 2
	nftaMatchName  = 1 // of an expression "match" or "target", which are those of iptables
)

// chain counts one NFT_MSG_NEWCHAIN: struct nfgenmsg, then attributes. A base
// chain has a hook.
func (s *ruleset) chain(b []byte) error {
	if len(b) < sizeofNfgenmsg {
		return errShort
	}
	if attr(b[sizeofNfgenmsg:], nftaChainHook) != nil {
		s.bases++
	}
	s.tracks = s.tracks || cString(attr(b[sizeofNfgenmsg:], nftaChainType)) == "nat"
	return nil
}

// rule counts one NFT_MSG_NEWRULE.
func (s *ruleset) rule(b []byte) error {
	if len(b) < sizeofNfgenmsg {
		return errShort
	}
	family, b := b[0], b[sizeofNfgenmsg:]
	table, chain := cString(attr(b, nftaRuleTable)), cString(attr(b, nftaRuleChain))
	if table == "" || chain == "" {
		return errors.New("the kernel reports a rule without a chain")
	}
	if s.rules == nil {
		s.rules = map[string]int{}
	}
	s.rules[fmt.Sprint(family, " ", table, " ", chain)]++
	for kind, expr := range attrs(attr(b, nftaRuleExprs)) {
		s.tracks = s.tracks || kind == nftaListElem && tracks(expr)
	}
	return nil
}

// tracks reports whether an expression needs connection tracking.
func tracks(expr []byte) bool {
	name := cString(attr(expr, nftaExprName))
	if name == "match" || name == "target" {
		name = cString(attr(attr(expr, nftaExprData), nftaMatchName))
	}
	return slices.Contains([]string{
		"ct", "nat", "masq", "redir", "connlimit", "flow_offload", "synproxy", // nftables
		"conntrack", "state", "connmark", "connbytes", "helper", "SNAT", "DNAT", "MASQUERADE", "REDIRECT", "CONNMARK", "CT", "SYNPROXY", // iptables
	}, name)
}

// firewall reads the packet filters that every packet of the calling thread's
// network namespace passes.
func (h *Host) firewall(n *notes) *measure.Firewall {
	var w measure.Firewall
	set := h.nftables(n)
	if set != nil {
		w.Tables, w.Chains, w.Rules, w.LongestChain = &set.tables, &set.bases, new(0), new(0)
		for _, rules := range set.rules {
			*w.Rules += rules
			*w.LongestChain = max(*w.LongestChain, rules)
		}
	}
	legacy := keeper[[]string](n, "firewall.iptables_tables")(h.fs.legacyTables())
	if legacy != nil && len(*legacy) > 0 {
		w.Legacy = *legacy
		w.LegacyRules = keeper[int](n, "firewall.iptables_rules")(h.legacyRules(*legacy))
	}
	h.fs.conntrack(n, &w, set, legacy)
	if set == nil && w.Legacy == nil && w.Conntrack == nil && w.Tracked == nil {
		return nil
	}
	return &w
}

// nftables counts the kernel's nftables rules. It does not ask where that
// would load the nftables module: then there are none.
func (h *Host) nftables(n *notes) *ruleset {
	if h.system == nil {
		n.add("firewall.nft_tables", onlyLive)
		return nil
	}
	if h.fs.notLoaded("nf_tables") {
		return &ruleset{}
	}
	set, err := h.system.rules()
	switch {
	case err == nil:
		return &set
	case denied(err.Error()):
		n.add("firewall.nft_tables", "only root may list them: "+err.Error())
	default:
		n.add("firewall.nft_tables", err.Error())
	}
	return nil
}

// notLoaded reports whether a kernel module is neither loaded nor, by the
// list of the kernel release, built in. False where that is not known.
func (f FS) notLoaded(module string) bool {
	if f.Exists(path.Join("sys/module", module)) {
		return false
	}
	builtIn, err := f.Read(path.Join("lib/modules", f.Optional("proc/sys/kernel/osrelease"), "modules.builtin"))
	return err == nil && !strings.Contains(string(builtIn), "/"+module+".ko")
}

// legacyTables lists the tables of legacy iptables: "ip filter", "ip6 nat".
// Without these files its modules are not loaded.
func (f FS) legacyTables() ([]string, error) {
	var all []string
	for _, family := range []string{"ip", "ip6", "arp"} {
		b, err := f.net(family + "_tables_names")
		if errors.Is(err, fs.ErrNotExist) && f.Exists("proc/self/net/dev") {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range strings.Fields(string(b)) {
			all = append(all, family+" "+name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// legacyRules adds up the entries of iptables tables. It leaves out
// arptables, which no test packet passes.
func (h *Host) legacyRules(tables []string) (sum int, err error) {
	if h.system == nil {
		return 0, errors.New(onlyLive)
	}
	for _, table := range tables {
		if strings.HasPrefix(table, "arp ") {
			continue
		}
		entries, err := h.system.entries(table)
		if err != nil {
			return 0, err
		}
		sum += entries
	}
	return sum, nil
}

// parseTableInfo reads struct ipt_getinfo (include/uapi/linux/netfilter_ipv4/ip_tables.h):
// a name of 32 bytes, 11 words about hooks, then the number of entries.
func parseTableInfo(b []byte) (int, error) {
	if len(b) < sizeofTableInfo {
		return 0, errShort
	}
	return int(binary.NativeEndian.Uint32(b[76:])), nil
}

// sizeofTableInfo is the length of struct ipt_getinfo and of its IPv6
// equivalent.
const sizeofTableInfo = 84

// conntrack reads the connection tracking table
// (Documentation/networking/nf_conntrack-sysctl.rst). Its files exist as soon
// as the module is loaded; since Linux 4.10 connections are tracked only
// where a rule needs it.
func (f FS) conntrack(n *notes, w *measure.Firewall, set *ruleset, legacy *[]string) {
	const dir = "proc/sys/net/netfilter"
	tracked, err := f.Number64(path.Join(dir, "nf_conntrack_count"))
	if errors.Is(err, fs.ErrNotExist) && f.Exists("proc/sys/net/core") {
		w.Conntrack = new(false) // the module is not loaded
		return
	}
	if err != nil {
		n.add("firewall.conntrack", err.Error())
		return
	}
	w.Tracked = &tracked
	w.TrackedMax = keeper[int64](n, "firewall.conntrack_max")(f.Number64(path.Join(dir, "nf_conntrack_max")))
	w.TrackDrops = keeper[int64](n, "firewall.conntrack_drops")(tree.Parsed(f.net, "stat/nf_conntrack", parseConntrackDrops))
	switch {
	case tracked > 0 || set != nil && set.tracks:
		w.Conntrack = new(true)
	case set == nil || legacy == nil || len(*legacy) > 0:
		n.add("firewall.conntrack", "the table is empty now, and thru could not read the rules that fill it")
	default:
		w.Conntrack = new(false)
	}
}

// parseConntrackDrops adds up the connections that could not be inserted and
// the packets that were dropped since the table was full.
func parseConntrackDrops(text string) (int64, error) {
	all, err := parseConntrack(text)
	if err != nil {
		return 0, err
	}
	failed, ok1 := all["Conntrack.InsertFailed"]
	drop, ok2 := all["Conntrack.Drop"]
	if !ok1 || !ok2 {
		return 0, errors.New("no column of drops")
	}
	return int64(failed + drop), nil
}

// nfnetlink is the header of an nftables request: all families, version 0, no
// resource (struct nfgenmsg).
type nfnetlink struct{}

// Len returns the length in bytes.
func (nfnetlink) Len() int { return sizeofNfgenmsg }

// Serialize returns the bytes.
func (nfnetlink) Serialize() []byte { return binary.BigEndian.AppendUint32(nil, 0) }
