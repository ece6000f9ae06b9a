package main

import (
	"errors"
	"fmt"
	"path/filepath"
)

// natsServer keeps of the NATS server what passes messages between clients: the options of package bus turn on nothing
// else. In the copy, functions of the other features do nothing, and return an error where they return one. What stays of
// them checks options, and finds the features turned off. The linker drops the rest, which is 6 MB, and a compiler has
// half as much to do. A controller uses JetStream of other servers only: tests of that skip where ApiErrors is empty.
func natsServer(dir string) error {
	server := filepath.Join(dir, "server")
	err := errors.Join(
		create(filepath.Join(server, "slim.go"), fmt.Sprintf(removed, "server")),
		create(filepath.Join(dir, "internal/s2/s2.go"), emptyS2),
	)
	for _, f := range natsFeatures() {
		err = errors.Join(err, empty(filepath.Join(server, f.file), f.except, f.only))
	}
	for _, file := range []string{"client.go", "server.go"} {
		err = errors.Join(err, rewrite(filepath.Join(server, file), `"github\.com/klauspost/compress/s2"`, `"github.com/nats-io/nats-server/v2/internal/s2"`, 1))
	}
	return errors.Join(err,
		rewrite(filepath.Join(server, "server.go"), `^\t_ "net/http/pprof"\n`, "", 1),
		rewrite(filepath.Join(server, "jetstream_errors_generated.go"), `ApiErrors = map\[ErrorIdentifier\]\*ApiError\{\n(\t\t.*\n)*\t\}`, "ApiErrors map[ErrorIdentifier]*ApiError", 1),
	)
}

// natsClient drops web sockets, which package bus does not accept as an address.
func natsClient(dir string) error {
	return errors.Join(
		create(filepath.Join(dir, "slim.go"), fmt.Sprintf(removed, "nats")),
		empty(filepath.Join(dir, "ws.go"), []string{"isWebsocketScheme"}, nil),
	)
}

const removed = `package %s

import "errors"

var errRemoved = errors.New("nats: thru builds without this feature")
`

// emptyS2 has what the server's links to others and its clients share of a library for compression.
const emptyS2 = `// Package s2 stands in for a library that compresses links between servers.
package s2

import (
	"errors"
	"io"
)

var errRemoved = errors.New("s2: thru builds without compression of links")

type (
	Reader       struct{}
	Writer       struct{}
	WriterOption struct{}
)

func NewReader(io.Reader) *Reader { return &Reader{} }
func (*Reader) Reset(io.Reader) {}
func (*Reader) Read([]byte) (int, error) { return 0, errRemoved }

func NewWriter(io.Writer, ...WriterOption) *Writer { return &Writer{} }
func (*Writer) Reset(io.Writer) {}
func (*Writer) Write([]byte) (int, error) { return 0, errRemoved }
func (*Writer) Close() error { return errRemoved }

func WriterConcurrency(int) WriterOption { return WriterOption{} }
func WriterUncompressed() WriterOption { return WriterOption{} }
func WriterBestCompression() WriterOption { return WriterOption{} }
func WriterBetterCompression() WriterOption { return WriterOption{} }
`

// feature is a file whose functions are emptied.
type feature struct {
	file   string
	except []string // functions that stay
	only   []string // not empty: no others are emptied
}

// natsFeatures lists what is emptied. What stays checks options, or answers that a feature is turned off.
func natsFeatures() []feature {
	return []feature{
		// Streams stored on disks, and their clusters.
		{file: "consumer.go"}, {file: "cron.go"}, {file: "filestore.go"}, {file: "memstore.go"}, {file: "raft.go"},
		{file: "jetstream.go", except: []string{"validateJetStreamOptions"}},
		{file: "jetstream_api.go"}, {file: "jetstream_batching.go"}, {file: "jetstream_cluster.go"},
		{file: "jetstream_errors_generated.go"}, {file: "jetstream_events.go"}, {file: "raft_transport.go"},
		{file: "scheduler.go"}, {file: "sdm.go"}, {file: "stream.go"}, {file: "stream_backup.go"},
		// Links between servers.
		{file: "route.go", except: []string{"Server.sendAsyncInfoToClients"}},
		{file: "gateway.go", except: []string{"validateGatewayOptions", "getGWHash", "getOldHash", "Server.newGateway",
			"isGWRoutedReply", "isGWRoutedSubjectAndIsOldPrefix", "hasGWRoutedReplyPrefix", "getGWRoutedSubjectOrSelf", "getSubjectFromGWRoutedReply"}},
		{file: "leafnode.go", except: []string{"validateLeafNode", "validateLeafNodeAuthOptions"}},
		// Clients of other protocols.
		{file: "mqtt.go", except: []string{"validateMQTTOptions"}},
		{file: "websocket.go", except: []string{"validateWebsocketOptions"}},
		{file: "client_proxyproto.go"},
		// What the system account reports.
		{file: "events.go", except: []string{"getHash", "getHashSize", "clearTimer", "accForClient", "issuerForClient", "Server.wrapChk"}},
		// Monitoring, and changes of options while it runs.
		{file: "monitor.go", except: []string{"redactBearerJWT", "ConnInfo.fill", "createProxyInfo", "client.getRTT", "newSubDetail",
			"newClientSubDetail", "myUptime", "ClosedState.String"}},
		{file: "msgtrace.go"}, {file: "reload.go"}, {file: "signal.go"},
		{file: "server.go", only: []string{"Server.startMonitoring", "Server.StartProfiler", "setGoRoutineLabels"}},
		// Certificates' and accounts' servers.
		{file: "auth_callout.go"}, {file: "dirstore.go"}, {file: "ocsp_peer.go", except: []string{"Server.plugTLSOCSPPeer"}},
		{file: "ocsp_responsecache.go"},
	}
}
