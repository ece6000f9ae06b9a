package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Streams that the controllers and operators of a NATS cluster with JetStream share.
// Those of names and leases have the layout of key-value buckets
// (docs.nats.io, ADR-8), so that `nats kv` shows them.
const (
	streamNames  = "KV_thru-names"  // $KV.thru-names.NAME: which agent owns a name
	streamLeases = "KV_thru-leases" // $KV.thru-leases.run.RUN: who runs it; an entry that is not renewed expires
	streamRuns   = "thru-runs"      // thru.run.RUN.>: plans in progress, and their finished steps

	nameSubject  = "$KV.thru-names."
	leaseSubject = "$KV.thru-leases.run."
	runSubject   = "thru.run."
)

// Times of shared state.
const (
	jsPatience  = 3 * time.Second             // for a reply of JetStream
	leaseLife   = 15 * time.Second            // of an entry of streamLeases
	leaseRenew  = 3 * time.Second             // between two renewals
	leaseTrust  = 10 * time.Second            // after the last renewal, its owner stops: before another may begin
	runLife     = 48 * time.Hour              // of an entry of streamRuns
	sharedAgain = 10 * time.Second            // between two attempts to open the streams
	copies      = 3                           // of each stream, in a cluster
	noCluster   = 10074                       // JetStream's error code: more than one copy needs a cluster
	otherConfig = 10058                       // the stream exists, as an administrator has configured it
	wrongLast   = 10071                       // the last entry is not the expected one
	noMessage   = 10037                       // there is no such entry
	headerLast  = nats.ExpectedLastSubjSeqHdr // sequence number of the last entry; 0: none
)

// Errors of shared state.
var (
	errNoJetStream = errors.New("the NATS cluster has no JetStream")
	errChanged     = errors.New("another process has changed the entry")
	errNoEntry     = errors.New("no such entry")
)

// jetStream makes the few requests of JetStream that thru needs, without the client
// library's package for all of them.
type jetStream struct{ nc *nats.Conn }

// jsReply holds the parts of JetStream's replies that thru reads.
type jsReply struct {
	Seq   uint64 `json:"seq"` // of a stored entry
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
	State struct {
		Subjects map[string]uint64 `json:"subjects"` // number of entries of each
	} `json:"state"`
	Message *jsEntry `json:"message"`
}

// jsEntry is an entry of a stream.
type jsEntry struct {
	Seq    uint64 `json:"seq"`
	Header []byte `json:"hdrs"`
	Data   []byte `json:"data"`
}

// jsStream is the configuration of a stream.
type jsStream struct {
	Name       string   `json:"name"`
	Subjects   []string `json:"subjects"`
	Retention  string   `json:"retention"`
	Storage    string   `json:"storage"`
	Discard    string   `json:"discard"`
	Replicas   int      `json:"num_replicas"`
	PerSubject int      `json:"max_msgs_per_subject"`
	MaxAge     int64    `json:"max_age"` // ns
	Duplicates int64    `json:"duplicate_window"`
	Rollup     bool     `json:"allow_rollup_hdrs"`
	DenyDelete bool     `json:"deny_delete"`
	Direct     bool     `json:"allow_direct"`
}

// ask sends a request to JetStream.
func (j jetStream) ask(ctx context.Context, m *nats.Msg) (r jsReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, jsPatience)
	defer cancel()
	reply, err := j.nc.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return r, errNoJetStream
	case err != nil:
		return r, fmt.Errorf("JetStream: %w", err)
	}
	if err := json.Unmarshal(reply.Data, &r); err != nil {
		return r, fmt.Errorf("JetStream: reading its reply: %w", err)
	}
	if e := r.Error; e != nil {
		switch e.Code {
		case wrongLast:
			return r, errChanged
		case noMessage:
			return r, errNoEntry
		}
		return r, fmt.Errorf("JetStream: %s", printable(e.Description, maxSentence))
	}
	return r, nil
}

// api calls a function of JetStream.
func (j jetStream) api(ctx context.Context, function string, body any) (jsReply, error) {
	return j.ask(ctx, &nats.Msg{Subject: "$JS.API." + function, Data: jsonOf(body)})
}

// open creates the streams where they do not exist.
func (j jetStream) open(ctx context.Context) error {
	bucket := jsStream{Retention: "limits", Storage: "file", Discard: "new", Replicas: copies, PerSubject: 1, Duplicates: int64(2 * time.Minute), Rollup: true, DenyDelete: true, Direct: true}
	names, leases, runs := bucket, bucket, bucket
	names.Name, names.Subjects = streamNames, []string{nameSubject + ">"}
	leases.Name, leases.Subjects, leases.MaxAge, leases.Duplicates = streamLeases, []string{"$KV.thru-leases.>"}, int64(leaseLife), int64(leaseLife)
	runs.Name, runs.Subjects, runs.MaxAge = streamRuns, []string{runSubject + ">"}, int64(runLife)
	for _, s := range []jsStream{names, leases, runs} {
		r, err := j.api(ctx, "STREAM.CREATE."+s.Name, s)
		if r.Error != nil && r.Error.Code == noCluster {
			s.Replicas = 1
			r, err = j.api(ctx, "STREAM.CREATE."+s.Name, s)
		}
		if err != nil && (r.Error == nil || r.Error.Code != otherConfig) {
			return fmt.Errorf("opening %s: %w", s.Name, err)
		}
	}
	return nil
}

// put stores an entry if the last one of its subject has the sequence number last; 0
// means that there is none. Else it returns errChanged.
func (j jetStream) put(ctx context.Context, subject string, header nats.Header, data []byte, last uint64) (uint64, error) {
	if header == nil {
		header = nats.Header{}
	}
	header.Set(headerLast, strconv.FormatUint(last, 10))
	r, err := j.ask(ctx, &nats.Msg{Subject: subject, Header: header, Data: data})
	return r.Seq, err
}

// last returns the last entry of a subject, from the leader of the stream: replicas may
// be behind. Without one the error is errNoEntry.
func (j jetStream) last(ctx context.Context, stream, subject string) (jsEntry, error) {
	r, err := j.api(ctx, "STREAM.MSG.GET."+stream, map[string]string{"last_by_subj": subject})
	if err != nil {
		return jsEntry{}, err
	}
	if r.Message == nil {
		return jsEntry{}, errNoEntry
	}
	return *r.Message, nil
}

// header returns a header of an entry; "" where it has none.
func (e jsEntry) header(name string) string {
	for line := range strings.SplitSeq(string(e.Header), "\r\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// subjects lists the subjects of a stream that match a filter, without prefix and suffix.
func (j jetStream) subjects(ctx context.Context, stream, prefix, suffix string) ([]string, error) {
	var all []string
	for {
		r, err := j.api(ctx, "STREAM.INFO."+stream, map[string]any{"subjects_filter": prefix + ">", "offset": len(all)})
		if err != nil {
			return nil, err
		}
		for subject := range r.State.Subjects {
			all = append(all, subject)
		}
		if len(r.State.Subjects) < infoPage {
			break
		}
	}
	var found []string
	for _, subject := range all {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(subject, prefix), suffix); ok {
			found = append(found, name)
		}
	}
	return found, nil
}

// infoPage is how many subjects JetStream lists in one reply
// (server/jetstream_api.go, JSMaxSubjectDetails).
const infoPage = 100_000
