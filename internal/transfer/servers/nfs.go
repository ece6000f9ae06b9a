package servers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// ganeshaStart keeps what both programs write to /run off the machine's own,
// so it needs a private mount namespace.
const ganeshaStart = `mount -t tmpfs none /run; rpcbind -f & until rpcinfo -p 127.0.0.1 >/dev/null 2>&1; do sleep 0.05; done; exec ganesha.nfsd -F -L STDERR -f "$1" -p /run/ganesha.pid`

// Ganesha returns an nfs-ganesha of some versions ("3", "4.1", "4.0") with a
// port mapper. Both have well-known ports and write to /run: they need a
// network namespace, a mount namespace, and root. It exports the folder files
// of dir, and the other named ones, by all versions under the same paths.
func Ganesha(dir string, versions []string, more ...string) (Server, error) {
	s := &setup{dir: dir}
	for _, name := range []string{"ganesha.nfsd", "rpcbind", "rpcinfo"} {
		s.program(name)
	}
	files := s.folder("files")
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
	conf := s.write("ganesha.conf", text)
	return s.server("", files, strings.TrimPrefix(files, "/"), "sh", "-c", ganeshaStart, "sh", conf)
}

// minorVersions returns the line with the minor versions of version 4.
func minorVersions(minors []string) string {
	if len(minors) == 0 {
		return ""
	}
	return "Minor_Versions = " + strings.Join(minors, ", ") + ";"
}
