package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"time"

	"thru/internal/transfer"
)

// cleanUp limits the time to remove an incomplete file.
const cleanUp = 700 * time.Millisecond

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "web", Get: s.get, Put: s.put, Remove: s.remove,
		Size: func(ctx context.Context, path string) (int64, error) {
			size, err := s.head(ctx, path)
			if err == nil && size < 0 {
				err = errors.New("the server does not report the size")
			}
			return max(0, size), err
		},
	}
}

// head requests the size of a file; -1 where the server does not report it.
func (s *session) head(ctx context.Context, path string) (int64, error) {
	resp, err := s.ask(ctx, http.MethodHead, path, nil, nil)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.ContentLength, judge(resp, false)
}

// get writes a file's bytes to w.
func (s *session) get(ctx context.Context, path string, w io.Writer) (int64, error) {
	resp, err := s.ask(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := judge(resp, false); err != nil {
		return 0, err
	}
	sink := &transfer.Noting{W: transfer.Sink(ctx, w)}
	_, err = transfer.Copy(sink, resp.Body, s.cfg.Block)
	return sink.N, sink.Ended(ctx, resp.ContentLength, err)
}

// put creates a file. HTTP has no temporary names, so put removes an
// incomplete file where it is not the one that was there before.
func (s *session) put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	before, err := s.head(ctx, path)
	switch {
	case err == nil && !overwrite:
		return transfer.ErrExists
	case errors.Is(err, transfer.ErrMissing):
		before = absent
	case err != nil:
		return err
	}
	err = s.send(ctx, path, r, size, overwrite)
	if sent := (*refused)(nil); err != nil && !errors.As(err, &sent) {
		err = errors.Join(err, s.undo(path, before))
	}
	return err
}

// absent is the size of a file that did not exist.
const absent = -2

// refused is the answer of a server that took nothing.
type refused struct{ error }

// Unwrap returns the reason.
func (r *refused) Unwrap() error { return r.error }

func (s *session) send(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	header := http.Header{}
	if !overwrite {
		header.Set("If-None-Match", "*") // servers that support it do not replace a file created meanwhile
	}
	source := transfer.Source(ctx, r, size)
	resp, err := s.ask(ctx, http.MethodPut, path, &body{source, size}, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	err = judge(resp, true)
	if err == nil {
		return nil
	}
	if resp.StatusCode == http.StatusInternalServerError && s.noFolder(ctx, path) {
		err = fmt.Errorf("%w: the folder (%s)", transfer.ErrMissing, resp.Status)
	}
	return &refused{err}
}

// noFolder reports whether a file's folder is missing, since nginx then only
// reports a failure.
func (s *session) noFolder(ctx context.Context, file string) bool {
	folder := path.Dir(file)
	if folder == "." {
		return false
	}
	resp, err := s.ask(ctx, http.MethodHead, folder+"/", nil, nil)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusNotFound
}

// undo removes what a broken PUT left, by a new connection.
func (s *session) undo(path string, before int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	fresh := &session{scheme: s.scheme, cfg: s.cfg, password: s.password}
	fresh.Wires = transfer.NewWires(s.cfg)
	fresh.http = &http.Client{CheckRedirect: fresh.redirect, Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, addr string) (net.Conn, error) { return fresh.Control(ctx, addr) },
		TLSClientConfig: s.tls, MaxResponseHeaderBytes: mostHeader,
	}}
	defer fresh.Close()
	now, err := fresh.head(ctx, path)
	switch {
	case errors.Is(err, transfer.ErrMissing), err == nil && now == before:
		return nil // nothing, or the file that was there before
	case err == nil:
		err = fresh.remove(ctx, path)
	}
	if err != nil {
		return fmt.Errorf("a part of the file may remain at the server: %w", err)
	}
	return nil
}

// remove removes a file.
func (s *session) remove(ctx context.Context, path string) error {
	resp, err := s.ask(ctx, http.MethodDelete, path, nil, nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	return judge(resp, true)
}

// Close closes the connections.
func (s *session) Close() error {
	err := s.Wires.Close() // first: TLS would wait for a silent remote end
	s.http.CloseIdleConnections()
	return err
}
