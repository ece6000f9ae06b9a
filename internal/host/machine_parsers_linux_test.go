package host

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"thru/internal/host/tree"
)

func TestMountInfo(t *testing.T) {
	all, err := parseMountInfo("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/ro\\134ot rw,errors=continue\n" +
		"43 42 0:4 net:[4026532247] /run/netns/x rw - nsfs nsfs rw\n44 42 0:5 / /none rw - tmpfs  rw\n")
	want := []mount{{36, "98:0", "/mnt1", "/mnt 2", "ext3", `/dev/ro\ot`, "rw,errors=continue", "rw,noatime"},
		{43, "0:4", "net:[4026532247]", "/run/netns/x", "nsfs", "nsfs", "rw", "rw"}, {id: 44, device: "0:5", root: "/", point: "/none", kind: "tmpfs", own: "rw"}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, bad := range []string{"", "36 35 98:0 / / rw", "36 - ext3 x y"} {
		if _, err := parseMountInfo(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Neither a dead server nor a path through its mount must block the request
// for free space.
func TestDirectionsOverServers(t *testing.T) {
	list := []mount{{point: "/", kind: "ext4"}, {point: "/net", kind: "autofs"}, {point: "/mnt/nas", kind: "nfs4"}, {point: "/home/x/y", kind: "fuse.sshfs"}}
	for point, want := range map[string]bool{"/": true, "/data": true, "/net/x": false, "/mnt/nas/disk": false, "/mnt/nas2": true, "/home/x": true, "/home/x/y/z": false, "/mnt/nas": false} {
		if got := !over(waiting(list), point); got != want {
			t.Errorf("%s: %v, want %v", point, got, want)
		}
	}
}

func TestCgroupLevels(t *testing.T) {
	fs := files(t, map[string]string{"v2/a/b/cpu.max": "max 100000", "v1/cpu.cfs_quota_us": "-1"})
	groups, err := parseCgroup("4:cpu,cpuacct:/docker/1/x:y\n1:name=systemd:/\n0::/a/b\n")
	if err != nil || len(groups) != 3 || groups[0].path != "/docker/1/x:y" {
		t.Fatalf("%+v, %v", groups, err)
	}
	v2 := mount{kind: "cgroup2", root: "/", point: "/v2"}
	v1 := mount{kind: "cgroup", root: "/docker/1", point: "/v1", options: "rw,cpuacct,cpu"}
	for _, c := range []struct {
		mounts     []mount
		controller string
		want       string
	}{
		{[]mount{v2, v1}, "cpu", "v1/x:y v1"}, // the part that the mount does not show is cut off
		{[]mount{v2, v1}, "memory", "v2/a/b v2/a v2"},
		{[]mount{v2}, "cpu", ""},
		{[]mount{{kind: "cgroup", root: "/docker/2", point: "/v1", options: "cpu"}}, "cpu", ""},
		{[]mount{{kind: "cgroup2", root: "/", point: "/not-there"}}, "memory", ""},
	} {
		l, err := fs.levelsOf(groups, c.mounts, c.controller)
		if got := strings.Join(l.dirs, " "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s by %+v: %q, %v", c.controller, c.mounts, got, err)
		}
	}
	if _, ok := relativeTo("/../other", "/"); ok {
		t.Error("a group outside of the namespace is taken for one within")
	}
	for _, bad := range []string{"", "0:/", "0::relative"} {
		if _, err := parseCgroup(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The lowest quota of all levels applies; with one that cannot be read, none
// is known.
func TestQuota(t *testing.T) {
	for _, c := range []struct {
		low, high string
		want      quota
		bad       bool
	}{
		{"200000 100000", "150000 100000", quota{1.5, "top"}, false},
		{"20000 50000", "max 100000", quota{0.4, "top/low"}, false},
		{"max 100000", "max 100000", quota{}, false},
		{"50000 100000", "50000 100000", quota{0.5, "top/low"}, false},
		{"junk", "max 100000", quota{}, true},
		{"0 100000", "max 100000", quota{}, true},
		{"100 0", "max 100000", quota{}, true},
	} {
		fs := files(t, map[string]string{"top/low/cpu.max": c.low, "top/cpu.max": c.high})
		got, err := fs.quota(levels{version: 2, dirs: []string{"top/low", "top", "absent"}})
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%q below %q: %+v, %v", c.low, c.high, got, err)
		}
	}
}

func TestChosen(t *testing.T) {
	for s, want := range map[string]string{"always [madvise] never": "madvise", "none": "none", "[none] mq-deadline": "none", "": "", "a b": "", "[]": "", "[x": ""} {
		if got, err := chosen(s); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
}

// nla builds a netlink attribute.
func nla(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// nftRule builds an NFT_MSG_NEWRULE with one expression of that name.
func nftRule(family byte, table, chain, expr, match string) []byte {
	e := nla(nftaExprName, []byte(expr+"\x00"))
	if match != "" {
		e = append(e, nla(nftaExprData, nla(nftaMatchName, []byte(match+"\x00")))...)
	}
	return slices.Concat([]byte{family, 0, 0, 0}, nla(nftaRuleTable, []byte(table+"\x00")), nla(nftaRuleChain, []byte(chain+"\x00")),
		nla(nftaRuleExprs|1<<15, nla(nftaListElem|1<<15, e)))
}

func TestRuleset(t *testing.T) {
	var s ruleset
	for _, r := range [][]byte{nftRule(2, "filter", "input", "cmp", ""), nftRule(2, "filter", "input", "match", "comment"),
		nftRule(10, "filter", "input", "counter", ""), nftRule(2, "filter", "output", "cmp", "conntrack")} {
		if err := s.rule(r); err != nil {
			t.Fatal(err)
		}
	}
	if s.rules["2 filter input"] != 2 || len(s.rules) != 3 || s.tracks {
		t.Errorf("%+v", s)
	}
	for _, expr := range [][2]string{{"ct", ""}, {"masq", ""}, {"match", "conntrack"}, {"match", "state"}, {"target", "MASQUERADE"}} {
		var s ruleset
		if err := s.rule(nftRule(2, "t", "c", expr[0], expr[1])); err != nil || !s.tracks {
			t.Errorf("%v needs connections to be tracked: %+v, %v", expr, s, err)
		}
	}
	head := []byte{2, 0, 0, 0}
	for _, c := range []struct {
		b             []byte
		bases, tracks bool
	}{
		{head, false, false},
		{append(head, nla(nftaChainHook|1<<15, nla(1, []byte{0, 0, 0, 1}))...), true, false},
		{append(head, nla(nftaChainType, []byte("nat\x00"))...), false, true},
	} {
		var s ruleset
		if err := s.chain(c.b); err != nil || (s.bases == 1) != c.bases || s.tracks != c.tracks {
			t.Errorf("%x: %+v, %v", c.b, s, err)
		}
	}
	if s.chain([]byte{1}) == nil || s.rule(nil) == nil || s.rule(head) == nil {
		t.Error("half a message is taken")
	}
}

func FuzzHostFiles(f *testing.F) {
	for _, s := range []string{"MemTotal: 5 kB\n", "nr_periods 5\nthrottled_usec 3\n", "always [madvise] never", "4:cpu:/a:b\n0::/\n",
		"36 35 98:0 / /m\\0402 rw - ext3 /dev/root rw\n", "found insert_failed drop\n0 f 1f\n", "h|\n eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		"1 (a b) c) S 1 1 1 0 -1 1 1 0 0 0 250 175 0 0 20 0 1 0 7\n", "current:   512 pages\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if all, err := tree.Fields(string(b)); err == nil && len(all) == 0 {
			t.Error("fields: neither one nor an error")
		}
		if all, err := tree.Counts(string(b)); err == nil {
			for name, n := range all {
				if n < 0 || name == "" {
					t.Errorf("%q counts %d", name, n)
				}
			}
		}
		if all, err := parseMountInfo(string(b)); err == nil && len(all) == 0 {
			t.Error("mounts: neither one nor an error")
		}
		groups, err := parseCgroup(string(b))
		for _, g := range groups {
			if err == nil && !strings.HasPrefix(g.path, "/") {
				t.Errorf("group %+v", g)
			}
			FS{tree.Tree{Root: t.TempDir()}}.levelsOf(groups, []mount{{kind: "cgroup2", root: "/", point: "/"}}, "cpu")
		}
		if n, err := parseConntrackDrops(string(b)); err == nil && n < 0 {
			t.Errorf("%d drops", n)
		}
		if n, err := vmwareBalloon(string(b)); err == nil && n < 0 {
			t.Errorf("a balloon of %d", n)
		}
		if p, err := parseTask(string(b)); err == nil && (p.ns < 0 || p.parent < 0) {
			t.Errorf("%+v", p)
		}
		parseNetDevs(string(b))
		if s, err := chosen(string(b)); err == nil && s == "" {
			t.Error("no choice and no error")
		}
		unescaped(string(b))
		firmwareText(string(b))
		chassis(string(b))
	})
}

func FuzzRuleset(f *testing.F) {
	f.Add(nftRule(2, "filter", "input", "match", "conntrack"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s ruleset
		if err := s.rule(b); err == nil && len(s.rules) != 1 {
			t.Errorf("%+v", s)
		}
		if _, err := parseTableInfo(b); (err == nil) != (len(b) >= sizeofTableInfo) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
		if err := s.chain(b); err == nil && s.bases > 1 {
			t.Errorf("%+v", s)
		}
	})
}
