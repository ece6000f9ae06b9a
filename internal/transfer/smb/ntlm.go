package smb

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	smb2 "github.com/cloudsoda/go-smb2"

	"thru/internal/unit"
)

// initiator logs in by NTLMv2, and keeps the server's name and version from
// the challenge: SMB has them nowhere else.
type initiator struct {
	smb2.NTLMInitiator
	name    string
	version string
}

// AcceptSecContext answers the challenge.
func (i *initiator) AcceptSecContext(challenge []byte) ([]byte, error) {
	i.name, i.version = parseChallenge(challenge)
	return i.NTLMInitiator.AcceptSecContext(challenge)
}

// server returns the server's name and version.
func (i *initiator) server() string {
	switch {
	case i.name == "":
		return ""
	case i.version == "":
		return i.name
	}
	return fmt.Sprintf("%s (as Windows %s)", i.name, i.version)
}

// parseChallenge parses the NetBIOS name and the version in a
// CHALLENGE_MESSAGE ([MS-NLMP] 2.2.1.2, 2.2.2.1); empty where there is none.
func parseChallenge(b []byte) (name, version string) {
	const fixed, info, hasVersion = 48, 40, 0x02000000
	little := binary.LittleEndian
	if len(b) < fixed || string(b[:8]) != "NTLMSSP\x00" || little.Uint32(b[8:]) != 2 {
		return "", ""
	}
	if len(b) >= fixed+8 && little.Uint32(b[20:])&hasVersion != 0 {
		version = fmt.Sprintf("%d.%d.%d", b[fixed], b[fixed+1], little.Uint16(b[fixed+2:]))
	}
	length, offset := int(little.Uint16(b[info:])), int64(little.Uint32(b[info+4:]))
	if offset+int64(length) > int64(len(b)) {
		return "", version
	}
	return computer(b[offset:][:length]), version
}

// computer finds MsvAvNbComputerName among the pairs.
func computer(b []byte) string {
	const end, computerName = 0, 1
	little := binary.LittleEndian
	for len(b) >= 4 {
		kind, length := little.Uint16(b), int(little.Uint16(b[2:]))
		b = b[4:]
		if kind == end || length > len(b) {
			return ""
		}
		if kind == computerName {
			return printable(b[:length])
		}
		b = b[length:]
	}
	return ""
}

// printable decodes untrusted UTF-16.
func printable(b []byte) string {
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, binary.LittleEndian.Uint16(b))
	}
	return string(unit.Filtered(utf16.Decode(units), func(r rune) bool {
		return r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && r != 0xfffd
	}))
}
