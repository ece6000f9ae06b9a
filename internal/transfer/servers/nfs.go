//go:build unix

package servers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/transfer"
)

// ganeshaStart keeps what both programs write to /run from the machine's own, so
// it needs a mount namespace that nobody else is in.
const ganeshaStart = `mount -t tmpfs none /run; rpcbind -f & until rpcinfo -p 127.0.0.1 >/dev/null 2>&1; do sleep 0.05; done; exec ganesha.nfsd -F -L STDERR -f "$1" -p /run/ganesha.pid`

// Ganesha is nfs-ganesha of some versions ("3", "4.1", "4.0") with a port mapper. Both have
// well-known ports and write to /run: they need a network namespace and a mount namespace,
// and root. It exports the folders files, and those named, of dir, by all versions under
// the same paths.
func Ganesha(dir string, versions []string, more ...string) (Server, error) {
	for _, name := range []string{"ganesha.nfsd", "rpcbind", "rpcinfo"} {
		if _, err := Program(name); err != nil {
			return Server{}, err
		}
	}
	files, err := folder(dir, "files")
	if err != nil {
		return Server{}, err
	}
	var majors, minors []string
	for _, version := range versions {
		major, minor, found := strings.Cut(version, ".")
		if majors = append(majors, major); found {
			minors = append(minors, minor)
		}
	}
	protocols := strings.Join(slices.Compact(majors), ", ")
	text := fmt.Sprintf("NFS_CORE_PARAM { Protocols = %s; NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }\n"+
		"NFSV4 { RecoveryRoot = %q; Graceless = true; %s }\nLOG { Default_Log_Level = WARN; }\n", protocols, filepath.Join(dir, "recovery"), minorVersions(minors))
	for i, name := range append([]string{"files"}, more...) {
		text += fmt.Sprintf("EXPORT { Export_Id = %d; Path = %q; Pseudo = %[2]q; Access_Type = RW; Squash = none; SecType = sys; Protocols = %[3]s; "+
			"Transports = TCP; PrivilegedPort = true; FSAL { Name = VFS; } }\n", i+1, filepath.Join(dir, name), protocols)
	}
	conf, err := write(dir, "ganesha.conf", text)
	if err != nil {
		return Server{}, err
	}
	path := strings.TrimPrefix(files, "/")
	return Server{
		Argv:   []string{"sh", "-c", ganeshaStart, "sh", conf},
		Config: transfer.Config{Host: Host, Path: path + "/x"},
		Folder: files, Dir: path,
	}, nil
}

// minorVersions is the line of those of version 4.
func minorVersions(minors []string) string {
	if len(minors) == 0 {
		return ""
	}
	return "Minor_Versions = " + strings.Join(minors, ", ") + ";"
}
