package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
)

// filesServer is an HTTP server for the files in the folder of its first argument, at the loopback port of
// its second. It requires the login of the third, USER:PASSWORD. Files that begin with "short" are reported
// larger than they are, and those that begin with "locked" are read-only.
func filesServer() {
	root, err := os.OpenRoot(os.Args[1])
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+os.Args[2]); err == nil {
			fmt.Println("ready")
			err = http.Serve(l, files{root, os.Args[3]})
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type files struct {
	root  *os.Root
	login string
}

func (s files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user+":"+password != s.login {
		w.Header().Set("WWW-Authenticate", `Basic realm="files"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	var err error
	switch r.Method {
	case http.MethodPut:
		err = s.put(w, name, r.Body)
	case http.MethodDelete:
		err = s.root.Remove(name)
	default:
		err = s.get(w, r, name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is no "+name, http.StatusNotFound)
	case errors.Is(err, fs.ErrPermission):
		http.Error(w, "not to be written", http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s files) put(w http.ResponseWriter, name string, body io.Reader) error {
	if strings.HasPrefix(name, "locked") {
		return fs.ErrPermission
	}
	f, err := s.root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err == nil {
		w.WriteHeader(http.StatusCreated)
	}
	return err
}

func (s files) get(w http.ResponseWriter, r *http.Request, name string) error {
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if strings.HasPrefix(name, "short") {
		size++
	}
	w.Header().Set("Content-Length", fmt.Sprint(size))
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, f) // the client may have gone
	}
	return nil
}
