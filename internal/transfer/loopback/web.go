package loopback

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// slowHead limits the time of a request's header.
const slowHead = 10 * time.Second

// serveHTTP is a server of net/http: GET, HEAD, PUT, DELETE.
func serveHTTP(o Options, encrypted bool) (*Server, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	d := &door{listener: l}
	s, err := d.server()
	if err != nil {
		return nil, err
	}
	if encrypted {
		config, pin, err := secure(o)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l, s.pin = tls.NewListener(l, config), pin // HTTP/1.1, like the client
	}
	h := &http.Server{Handler: web{newShelf(o)}, ReadHeaderTimeout: slowHead, ErrorLog: log.New(io.Discard, "", 0)}
	var over sync.WaitGroup
	over.Go(func() { _ = h.Serve(l) }) // Close ends it
	s.close = func() error {
		err := errors.Join(h.Close(), l.Close())
		over.Wait()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		return err
	}
	return s, nil
}

// web answers requests.
type web struct{ files *shelf }

// ServeHTTP answers one request.
func (s web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	size, there := s.files.Size(r.URL.Path)
	switch {
	case r.Method == http.MethodPut:
		n, err := drain(r.Body)
		if err != nil {
			return
		}
		s.files.Remove(r.URL.Path)
		s.files.Grow(r.URL.Path, n)
		w.WriteHeader(http.StatusCreated)
	case !there:
		http.NotFound(w, r)
	case r.Method == http.MethodDelete:
		s.files.Remove(r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		if r.Method == http.MethodGet {
			_ = s.files.pour(w, size) // a client that went away has what it wanted
		}
	default:
		http.Error(w, fmt.Sprintf("no %.20q here", r.Method), http.StatusMethodNotAllowed)
	}
}
