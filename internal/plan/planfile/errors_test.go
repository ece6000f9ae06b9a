package planfile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

// bad are plans that are refused, with the position, part of the message, and part of the hint. `thru: 1` is
// their first line.
var bad = map[string]struct{ text, where, message, hint string }{
	"typo":                  {"paris: [{from: local, to: local}]", "2:1", `no key "paris"`, "did you mean pairs?"},
	"typo in traffic":       {"traffic: {strems: 4}\npairs: [{from: local, to: local}]", "2:11", `no key "strems"`, "did you mean streams?"},
	"typo in a type":        {"pairs: [{type: one-to-on, from: local, to: local}]", "2:16", `type is "one-to-on"`, "did you mean one-to-one? type takes one-to-one, one-to-many"},
	"flag for a key":        {"traffic: {total-bitrate: 1G}\npairs: [{from: local, to: local}]", "2:11", `no key "total-bitrate"`, "did you mean total_bitrate?"},
	"key of an axis":        {"pairs: [{from: local, to: local}]\naxes: {stream: [1]}", "3:8", `no key "stream"`, "did you mean streams?"},
	"of a target":           {"pairs: [{from: local, to: local}]\ntargets: [{agregate: '>= 1G'}]", "3:12", `no key "agregate"`, "did you mean aggregate?"},
	"of an end point":       {"end_points: [{nam: a}]\npairs: [{from: local, to: local}]", "2:15", `no key "nam"`, "did you mean name?"},
	"of a rung":             {"rungs: [{name: x, pairs: [local, local]}]", "2:19", `no key "pairs"`, "did you mean pair?"},
	"twice":                 {"pairs: [{from: local, to: local}]\npairs: [{from: local, to: local}]", "3:1", `"pairs" exists twice`, "remove one"},
	"nothing":               {"name: x", "1:1", "no pairs", "pairs: [{"},
	"empty list":            {"pairs: []", "2:8", "pairs is an empty list", "mesh"},
	"empty axis":            {"pairs: [{from: local, to: local}]\naxes: {streams: []}", "3:17", "streams is an empty list", "[1, 2, 4]"},
	"empty axes":            {"pairs: [{from: local, to: local}]\naxes: {}", "3:7", "axes is empty", "such as"},
	"no list":               {"pairs: {from: a}", "2:9", "not a list", "such as"},
	"no mapping":            {"pairs: [a]", "2:9", "not a mapping", "type"},
	"not in YAML":           {"pairs: [{from: local, to: local]", "2:32", "", "brackets"},
	"a tab":                 {"pairs:\n\t- {from: local, to: local}", "3:1", "a tab stands here", "spaces"},
	"indentation":           {"name: x\n  order: sequential", "2:7", "mapping value is not allowed", "indentation"},
	"no number":             {"traffic: {streams: four}\npairs: [{from: local, to: local}]", "2:20", `streams is "four", not a whole number`, "1 to 128"},
	"a number in text":      {"traffic: {streams: '4'}\npairs: [{from: local, to: local}]", "2:20", `streams is "4", not a whole number`, "1 to 128"},
	"parts":                 {"traffic: {streams: 1.5}\npairs: [{from: local, to: local}]", "2:20", `streams is "1.5": not a whole number`, "1 to 128"},
	"negative":              {"traffic: {mss: -1}\npairs: [{from: local, to: local}]", "2:16", `mss is "-1": not a whole number`, "88 to 32767"},
	"no size of 0":          {"traffic: {mss: 0}\npairs: [{from: local, to: local}]", "2:16", `mss is "0"`, "88 to 32767"},
	"a version in text":     {"traffic: {ip: '4'}\npairs: [{from: local, to: local}]", "2:15", `ip is "4", not a whole number`, "4 or 6"},
	"too many streams":      {"traffic: {streams: 129}\npairs: [{from: local, to: local}]", "2:20", "streams is \"129\"", "streams takes 1 to 128"},
	"a size":                {"traffic: {window: 5Q}\npairs: [{from: local, to: local}]", "2:19", `window is "5Q"`, "800K"},
	"zero":                  {"traffic: {window: 0}\npairs: [{from: local, to: local}]", "2:19", "zero is not a size", "800K"},
	"too large":             {"traffic: {window: 1T}\npairs: [{from: local, to: local}]", "2:19", "window is \"1T\": more than 512 MiB", "window takes"},
	"a time":                {"traffic: {time: soon}\npairs: [{from: local, to: local}]", "2:17", `time is "soon"`, "10s"},
	"too long":              {"traffic: {time: 48h}\npairs: [{from: local, to: local}]", "2:17", "48h0m0s", "time takes 0.1 to 86400 seconds"},
	"true":                  {"traffic: {latency: on}\npairs: [{from: local, to: local}]", "2:20", `latency is "on"`, "true or false"},
	"a word":                {"traffic: {protocol: sctp}\npairs: [{from: local, to: local}]", "2:21", `protocol is "sctp"`, "tcp or udp"},
	"nothing behind":        {"traffic: {time: }\npairs: [{from: local, to: local}]", "2:16", "time is nothing", "10s"},
	"contradiction":         {"traffic: {protocol: udp, io: lean}\npairs: [{from: local, to: local}]", "2:11", "io: lean does not go with protocol: udp", "io gso"},
	"in a variant":          {"pairs: [{from: local, to: local}]\nvariants: [{name: x, protocol: udp, congestion: bbr}, {name: y, mss: 1400}]", "3:22", "congestion does not go with protocol: udp (with variant x)", ""},
	"at an axis":            {"traffic: {kind: rr}\npairs: [{from: local, to: local}]\naxes: {verify: [false, true]}", "4:8", "verify does not go with", "(copied)"},
	"two amounts":           {"traffic: {time: 10, bytes: 1G}\npairs: [{from: local, to: local}]", "2:21", "time and bytes contradict", "take one of bytes, blocks and time"},
	"two rates":             {"traffic: {bitrate: 1G, total_bitrate: 1G}\npairs: [{from: local, to: local}]", "2:24", "bitrate and total_bitrate contradict", "take one"},
	"two sends":             {"traffic: {bytes: 1G, blocks: 7}\npairs: [{from: local, to: local}]", "2:22", "bytes and blocks contradict", "take one"},
	"one connection":        {"traffic: {one_connection: true}\npairs: [{from: local, to: local}]", "2:11", "one_connection does not go without direction: bidir", "direction: bidir"},
	"connections back":      {"traffic: {kind: crr, direction: reverse}\npairs: [{from: local, to: local}]", "2:11", "direction: reverse does not go with kind: crr", "other end"},
	"axis twice":            {"pairs: [{from: local, to: local}]\naxes: {streams: [1, 2, 1]}", "3:24", "twice", "remove it"},
	"axis of both":          {"pairs: [{from: local, to: local}]\naxes: {direction: [both]}", "3:19", "both is forward and reverse", "forward, reverse and bidir"},
	"variant and axis":      {"pairs: [{from: local, to: local}]\naxes: {streams: [1]}\nvariants: [{name: x, streams: 2}, {name: y}]", "4:22", "streams is an axis too", "one place"},
	"by hand, one":          {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b}}, {name: y}]", "3:51", `the variant "y" has no by_hand`, "has to be undone"},
	"by hand, order":        {"pairs: [{from: local, to: local}]\norder: interleaved\nvariants: [{name: x, by_hand: {host: a, do: b}}, {name: y, by_hand: {host: a, do: c}}]", "3:8", "does not go with by_hand", "there-and-back"},
	"by hand, where":        {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {do: b}}, {name: y}]", "3:32", "by_hand has no host", "such as by_hand"},
	"by hand, value":        {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, fact: kernel}}, {name: y}]", "3:54", "the fact has no value", "such as is"},
	"by hand, list":         {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, fact: kernel, is: [1]}}, {name: y}]", "3:66", "is has to be one value", "as facts print it"},
	"by hand, command":      {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: \"a\\nb\"}}, {name: y}]", "3:45", "cannot be printed", "copied to a shell"},
	"by hand, wait":         {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, wait: 1s}}, {name: y}]", "3:54", "out of range", "10s to 168h"},
	"by hand, reboot":       {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, reboot: 1}}, {name: y}]", "3:56", "reboot is", "true or false"},
	"by hand, alike":        {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, fact: kernel, is: 1}}, {name: y, by_hand: {host: a, do: c, fact: kernel, is: 1}}]", "3:72", "kernel is 1 for both x and y", "its own value"},
	"by hand, a path":       {"pairs: [{from: local, to: local}]\nvariants: [{name: x, by_hand: {host: a, do: b, fact: a..b, is: 1}}, {name: y}]", "3:54", "has an empty part", "a path such as"},
	"blocks of nothing":     {"pairs: [{from: local, to: local}]\norder: blocks", "3:8", "nothing to compare", "name variants"},
	"blocks, precision":     {"pairs: [{from: local, to: local}]\norder: blocks\nprecision: 2%\nvariants: [{name: x}, {name: y}]", "4:12", "precision does not go with blocks", "repeat"},
	"one variant":           {"pairs: [{from: local, to: local}]\nvariants: [{name: x}]", "3:11", "not 1", "variants to compare"},
	"variant twice":         {"pairs: [{from: local, to: local}]\nvariants: [{name: x}, {name: x}]", "3:30", "twice", "its own name"},
	"no name":               {"pairs: [{from: local, to: local}]\nvariants: [{streams: 1}, {name: x}]", "3:13", "no name", "such as"},
	"interleaved":           {"pairs: [{from: local, to: local}]\norder: interleaved", "3:8", "nothing to compare", "variants"},
	"at once":               {"pairs: [{from: local, to: local}]\norder: simultaneous\nat_once: 4", "4:10", "at_once does not go with simultaneous", "leave it out"},
	"combinations":          {"pairs: [{from: local, to: local}]\naxes: {streams: [1,2,3,4,5,6,7,8,9,10], mss: [91,92,93,94,95,96,97,98,99,100], dscp: [0,1,2,3,4,5,6,7,8,9], length: [1,2,3,4,5,6,7,8,9,10], time: [1, 2]}", "3:8", "combinations", "fewer"},
	"unknown end":           {"end_points: [web-1, web-2]\npairs: [{from: web1, to: web-2}]", "3:16", `no end point "web1"`, "did you mean web-1?"},
	"end twice":             {"end_points: [a, a]\npairs: [{from: a, to: a}]", "2:17", "twice", "its own name"},
	"in a choice twice":     {"end_points: [a, b]\npairs: [{type: many-to-one, from: [a, a], to: b}]", "3:39", "twice", "end_points"},
	"no host":               {"end_points: [{labels: {x: y}}]\npairs: [{from: local, to: local}]", "2:15", "no name", "such as"},
	"a scheme":              {"end_points: ['http://x']\npairs: [{from: local, to: local}]", "2:14", "http://", "ssh://"},
	"another local":         {"end_points: [{name: me, at: local}]\npairs: [{from: me, to: me}]", "2:29", "another name", "local"},
	"local elsewhere":       {"end_points: [{name: local, at: h}]\npairs: [{from: local, to: local}]", "2:32", "local is this machine", "another name"},
	"slow link":             {"link_rate: 10\npairs: [{from: local, to: local}]", "2:12", `link_rate is "10": 10 bit/s is less`, "10G"},
	"port too high":         {"end_points: [{name: a, at: 'x:99999'}]\npairs: [{from: local, to: a}]", "2:28", "a port is 1 to 65535", "10.0.0.1:5201"},
	"port zero":             {"end_points: ['x:0']\npairs: [{from: local, to: 'x:0'}]", "2:14", "a port is 1 to 65535", ""},
	"port of letters":       {"end_points: ['x:abc']\npairs: [{from: local, to: 'x:abc'}]", "2:14", "a port is 1 to 65535", ""},
	"ssh nowhere":           {"end_points: [{name: a, at: 'ssh://'}]\npairs: [{from: local, to: a}]", "2:28", "the host is missing", "ssh://root@"},
	"ssh nobody":            {"end_points: [{name: a, at: 'ssh://@'}]\npairs: [{from: local, to: a}]", "2:28", "the user is missing", ""},
	"ssh option":            {"end_points: [{name: a, at: 'ssh://-oProxyCommand=x'}]\npairs: [{from: local, to: a}]", "2:28", "the host is missing", ""},
	"same place":            {"end_points: [{name: a, at: h}, {name: b, at: h}]\npairs: [{from: a, to: b}]", "2:33", "a and b are the same end point", "with itself"},
	"long name":             {"name: '" + strings.Repeat("x", 121) + "'\npairs: [{from: local, to: local}]", "2:7", "the name is", "at most 120"},
	"spaces":                {"end_points: ['a b']\npairs: [{from: local, to: local}]", "2:14", "not a name", "spaces"},
	"a number for name":     {"end_points: [10]\npairs: [{from: local, to: local}]", "2:14", `"10"`, "quotes"},
	"data of iperf3":        {"end_points: [{at: 'iperf3://h', data: 10.0.0.1}]\npairs: [{from: local, to: local}]", "2:39", "data does not go", "at"},
	"no controller":         {"end_points: [{match: {role: web}}]\npairs: [{from: local, to: local}]", "2:23", "needs a controller", "controller: NAME"},
	"match and name":        {"controller: x\nend_points: [{match: {role: web}, name: a}]\npairs: [{from: local, to: local}]", "3:35", "name does not go with match", "labels"},
	"empty match":           {"controller: x\nend_points: [{match: {}}]\npairs: [{from: local, to: local}]", "3:22", "match is a mapping", "{role: web}"},
	"watch key":             {"pairs: [{from: local, to: local}]\nwatch: {prob: 1s}", "3:9", "no key \"prob\"", "did you mean probes?"},
	"watch, turns":          {"pairs: [{from: local, to: local}]\nwatch: {tcp: 2000}", "3:14", "tcp is \"2000\"", "at most 1440"},
	"watch, turns of words": {"pairs: [{from: local, to: local}]\nwatch: {tcp: often}", "3:14", "tcp is \"often\"", "auto, or none"},
	"watch, hours":          {"pairs: [{from: local, to: local}]\nwatch: {hours: [10-12]}", "3:17", "hours has", "22:00-06:00"},
	"watch, load":           {"pairs: [{from: local, to: local}]\nwatch: {load: 130%}", "3:15", "load is", "30%"},
	"watch, objective":      {"pairs: [{from: local, to: local}]\nwatch: {objectives: ['speed >= 9G, 99% of days']}", "3:22", "there is no \"speed\"", "goodput"},
	"watch, no share":       {"pairs: [{from: local, to: local}]\nwatch: {objectives: ['goodput >= 9G']}", "3:22", "it has no share", "99% of days"},
	"watch, wrong bound":    {"pairs: [{from: local, to: local}]\nwatch: {objectives: ['rtt >= 9ms, 99% of days']}", "3:22", "a bound of rtt begins with <=", "availability"},
	"watch, maintenance":    {"pairs: [{from: local, to: local}]\nwatch: {maintenance: [{begin: '2027-01-09 22:00'}]}", "3:24", "has no end", "such as"},
	"watch, backwards":      {"pairs: [{from: local, to: local}]\nwatch: {maintenance: [{begin: '2027-01-09 22:00', end: '2027-01-09 20:00'}]}", "3:24", "ends before it begins", ""},
	"watch, nobody":         {"pairs: [{from: local, to: local}]\nwatch: {alarms: [{secret: x}]}", "3:19", "names nobody", "alertmanager"},
	"watch, two":            {"pairs: [{from: local, to: local}]\nwatch: {alarms: [{mail: a@b.example, journal: x}]}", "3:47", "has one of", "two entries"},
	"watch, no address":     {"pairs: [{from: local, to: local}]\nwatch: {alarms: [{webhook: hooks.example}]}", "3:28", "no address of a web server", "https://"},
	"watch, password":       {"pairs: [{from: local, to: local}]\nwatch: {alarms: [{webhook: 'https://a:b@hooks.example'}]}", "3:28", "password", "secret"},
	"no label":              {"end_points: [{name: a, labels: {x: y}}]\npairs: [{type: mesh, among: {x: z}}]", "3:30", "no end point matches {x: z}", "labels"},
	"mesh of one":           {"end_points: [a]\npairs: [{type: mesh, among: all}]", "3:8", "no pair", "two hosts"},
	"mesh of none":          {"pairs: [{type: mesh}]", "2:10", "no end point matches", "end_points"},
	"mesh from":             {"end_points: [a, b]\npairs: [{type: mesh, from: [a, b]}]", "3:10", "among", "among: all"},
	"no to":                 {"end_points: [a, b]\npairs: [{from: a}]", "3:10", "needs from and to", "to: [b]"},
	"matrix of what":        {"end_points: [a, b]\npairs: [{type: matrix, among: all}]", "3:10", "needs a label", "by: site"},
	"by of a mesh":          {"end_points: [a, b]\npairs: [{type: mesh, among: all, by: site}]", "3:10", "by is only for the type matrix", "matrix"},
	"uneven":                {"end_points: [a, b, c]\npairs: [{from: [a, b], to: c}]", "3:10", "2 ends in from and 1 in to", "matrix"},
	"many from":             {"end_points: [a, b, c]\npairs: [{type: one-to-many, from: [a, b], to: c}]", "3:35", "not 2", "many-to-one"},
	"many to":               {"end_points: [a, b, c]\npairs: [{type: many-to-one, from: a, to: [b, c]}]", "3:42", "not 2", "one-to-many"},
	"local listens":         {"end_points: [a]\npairs: [{from: a, to: local, listen: to}]", "3:38", "local opens no port", "either"},
	"iperf3 and b":          {"end_points: [b, {name: i, at: 'iperf3://h'}]\npairs: [{from: b, to: i}]", "3:10", "i has no agent", "local"},
	"iperf3 and itself":     {"end_points: [{name: i, at: 'iperf3://h'}]\npairs: [{from: i, to: i}]", "3:10", "against itself", "local"},
	"iperf3 at once":        {"end_points: [{name: i, at: 'iperf3://h'}]\ntraffic: {end_points: 2}\npairs: [{from: local, to: i}]", "3:23", "one test at a time", "sequential"},
	"iperf3 requests":       {"end_points: [{name: i, at: 'iperf3://h'}]\ntraffic: {kind: rr}\npairs: [{from: local, to: i}]", "3:11", "requests do not work with an iperf3 end point", "thru"},
	"rungs and pairs":       {"rungs: [{name: x, pair: [local, local]}]\npairs: [{from: local, to: local}]", "3:8", "pairs do not go with rungs", "rungs"},
	"rungs and axes":        {"rungs: [{name: x, pair: [local, local]}]\naxes: {streams: [1]}", "3:8", "axes do not go with rungs", "pairs"},
	"rungs and streams":     {"rungs: [{name: x, pair: [local, local]}]\ntraffic: {streams: 1}", "3:11", "streams does not go with rungs", "axes"},
	"rungs both ways":       {"rungs: [{name: x, pair: [local, local]}]\ntraffic: {direction: both}", "3:22", "one direction", "forward or reverse"},
	"rung twice":            {"rungs: [{name: x, pair: [local, local]}, {name: x, pair: [local, local]}]", "2:43", "twice", "its own name"},
	"rung of one":           {"rungs: [{name: x, pair: [local]}]", "2:25", "pair of the rung", "[a, a]"},
	"rung of what":          {"rungs: [{pair: [local, local]}]", "2:10", "no name", "virtual switch"},
	"rung without pair":     {"rungs: [{name: x}]", "2:10", "no pair", "virtual switch"},
	"rung nowhere":          {"rungs: [{name: x, pair: [local, b]}]", "2:33", `no end point "b"`, "end_points"},
	"no bound":              {"pairs: [{from: local, to: local}]\ntargets: [{pair: 95%}]", "3:18", "begins with >= or <=", `">= 95%"`},
	"no figure":             {"pairs: [{from: local, to: local}]\ntargets: [{where: {streams: 1}}]", "3:12", "names no figure", "aggregate"},
	"two figures":           {"pairs: [{from: local, to: local}]\ntargets: [{pair: '>= 1G', loss: '<= 1%'}]", "3:33", "one figure", "two targets"},
	"fairness of 2":         {"pairs: [{from: local, to: local}]\ntargets: [{fairness: '>= 2'}]", "3:22", "between 0 and 1", "0.9"},
	"where of what":         {"pairs: [{from: local, to: local}]\naxes: {streams: [1, 2]}\ntargets: [{pair: '>= 1G', where: {window: 8K}}]", "4:35", `does not vary "window"`, "streams"},
	"where never":           {"pairs: [{from: local, to: local}]\naxes: {streams: [1, 2]}\ntargets: [{pair: '>= 1G', where: {streams: 8}}]", "4:44", "streams is never", "1 or 2"},
	"where without":         {"pairs: [{from: local, to: local}]\ntargets: [{pair: '>= 1G', where: {streams: 8}}]", "3:35", "varies nothing", "axes"},
	"rung of a target":      {"pairs: [{from: local, to: local}]\ntargets: [{pair: '>= 1G', rung: LAN}]", "3:33", "no rung", "rungs"},
	"precision":             {"pairs: [{from: local, to: local}]\nprecision: 80%", "3:12", "precision", "2.5%"},
	"repeats":               {"pairs: [{from: local, to: local}]\nrepeat: 5000", "3:9", `repeat is "5000"`, "1 to 1000"},
	"gates":                 {"pairs: [{from: local, to: local}]\ngates: false", "3:8", `gates is "false"`, "on, off or force"},
	"link rate":             {"pairs: [{from: local, to: local}]\nlink_rate: fast", "3:12", `link_rate is "fast"`, "10G"},
	"merge key":             {"traffic: &t {streams: 1}\npairs: [{from: local, to: local}]\naxes: {<<: *t}", "4:8", "merge keys", "alias"},
	"an unknown alias":      {"traffic: *t\npairs: [{from: local, to: local}]", "2:10", `"t"`, "&NAME"},
	"an alias in it":        {"traffic: &t {streams: *t}\npairs: [{from: local, to: local}]", "2:23", `"t"`, "&NAME"},
	"a tag":                 {"traffic: !!map {streams: 1}\npairs: [{from: local, to: local}]", "2:10", "tag", "without"},
	"two documents":         {"pairs: [{from: local, to: local}]\n---\nthru: 1\n", "4:5", "second document", "---"},
	"control letters":       {"traffic: {\"a\\u001b[31mb\": 4}\npairs: [{from: local, to: local}]", "2:11", `"a?[31mb"`, "there is"},
}

func TestErrors(t *testing.T) {
	for name, c := range bad {
		_, err := Parse("plan.yaml", []byte("thru: 1\n"+c.text+"\n"))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		message, hint := err.Error(), fault.Hint(err)
		if !strings.HasPrefix(message, "plan.yaml:"+c.where+": ") || !strings.Contains(message, c.message) || fault.Code(err) != fault.Usage {
			t.Errorf("%s: %s\n want %s: %s", name, message, c.where, c.message)
		}
		if hint == "" || !strings.Contains(hint, strings.Trim(c.hint, "()")) {
			t.Errorf("%s: hint %q, want %q", name, hint, c.hint)
		}
		if strings.ContainsAny(message, "\n\x1b") {
			t.Errorf("%s: %q is no line", name, message)
		}
	}
}

// TestExpandErrors: mistakes that only show with the hosts of a controller are errors of Expand.
func TestExpandErrors(t *testing.T) {
	for message, text := range map[string]string{
		`no host "w9"`:               "end_points: [{name: a, at: fleet/w9}]\npairs: [{from: local, to: a}]",
		"no host of the controller":  "controller: fleet\nend_points: [{match: {role: mail}}]\npairs: [{type: mesh}]",
		"no end point matches":       "controller: fleet\nend_points: [{match: all}]\npairs: [{type: mesh, among: {role: mail}}]",
		"the same name":              "controller: fleet\nend_points: [{name: w1, at: 'ssh://h'}, {match: all}]\npairs: [{type: mesh}]",
		"d1 has 16 CPUs":             "controller: fleet\nend_points: [{match: all}]\npairs: [{type: mesh}]\naxes: {cpus: [1, 64]}",
		"\"other\" is needed":        "controller: other\nend_points: [{match: all}]\npairs: [{type: mesh}]",
		"2 ends in from and 1 in to": "controller: fleet\nend_points: [{match: all}]\npairs: [{from: {role: web}, to: {role: db}}]",
	} {
		f := parse(t, text)
		if len(f.Controllers()) != 1 {
			t.Errorf("%s: controllers %v", message, f.Controllers())
		}
		_, err := f.Expand(fleet(), nil)
		if err == nil || !strings.Contains(err.Error(), message) || fault.Hint(err) == "" {
			t.Errorf("%s: %v, hint %q", message, err, fault.Hint(err))
		}
	}
}

// TestTooMany: a plan with too many pairs, cells or runs is refused before it is built.
func TestTooMany(t *testing.T) {
	var names []string
	for i := range 4000 {
		names = append(names, "h"+strconv.Itoa(i))
	}
	list := func(n int) string { return "end_points: [" + strings.Join(names[:n], ", ") + "]\n" }
	for message, text := range map[string]string{
		"10000 pairs":            list(4000) + "pairs: [{type: mesh}]",
		"more than 20000 cells":  list(90) + "pairs: [{type: mesh}]\naxes: {streams: [1, 2, 3]}",
		"more than 20000 cells:": list(2) + "pairs: [{type: ring}]\naxes: {end_points: [20000]}",
		"has 1000000 runs":       list(32) + "pairs: [{type: mesh}]\nrepeat: 1000\ntraffic: {direction: forward}\naxes: {dscp: [1, 2]}",
	} {
		_, err := Parse("plan.yaml", []byte("thru: 1\n"+text))
		if message == "has 1000000 runs" {
			message = "runs, more than"
		}
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// TestHostile: text that would keep a parser busy, or overflow its stack, is refused at once.
func TestHostile(t *testing.T) {
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "x]\n"
	}
	for name, text := range map[string]string{
		"laughs":   laughs,
		"brackets": "a: " + strings.Repeat("[", 500_000),
		"braces":   strings.Repeat("{a: ", 200_000),
		"dashes":   strings.Repeat("- ", 500_000),
		"keys":     strings.Repeat("? ", 500_000),
		"anchors":  strings.Repeat("&a ", 300_000),
		"tags":     strings.Repeat("!!a\n", 250_000),
		"too long": "a: " + strings.Repeat("x", MaxBytes),
		"a list":   "a: [" + strings.Repeat("1,", 400_000) + "1]",
		"binary":   "thru\x00: 1",
		"no text":  "\xff\xfe\x00\x01",
		"nothing":  "",
		"comment":  "# nothing\n---\n",
		"scalar":   "thru",
		"list":     "- thru",
		"deep":     "a:\n b:\n  c:\n   d:\n    e:\n     f:\n      g:\n       h:\n        i:\n         j:\n          k:\n           l:\n            m:\n             n: 1\n",
		"version":  "thru: 2\n",
		"no one":   "name: x\n",
	} {
		_, err := Parse("plan.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "plan.yaml:") || fault.Hint(err) == "" || len(err.Error()) > 400 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}

// TestOptionsAreSpelled: every option that a message of package plan names is in the table, and every front
// end can spell it.
func TestOptionsAreSpelled(t *testing.T) {
	found := 0
	for _, file := range []string{"kind.go", "clash.go", "plan.go", "tune.go", "ladder.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "../"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING || !strings.Contains(l.Value, "{") || strings.Contains(l.Value, "json:") {
				return true
			}
			text, _ := strconv.Unquote(l.Value)
			option.Spelled(plan.Refuse("", text), func(id, value string) string {
				found++
				o := option.Find(id)
				if o == nil || value != "" && len(o.Words) > 0 && !slices.Contains(o.Words, value) {
					t.Errorf("%s: %q names %q %q, which no option is", file, text, id, value)
				}
				return ""
			})
			return true
		})
	}
	if found < 40 {
		t.Errorf("messages name %d options", found)
	}
}
