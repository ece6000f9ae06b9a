package smb

import (
	"context"
	"encoding/binary"
	"io"
)

// onlyOld reports whether a server without SMB2 answers SMB1 ([MS-CIFS]
// 2.2.4.52): no file is moved by it, but the error then has the reason.
func (s *session) onlyOld(ctx context.Context, address string) bool {
	conn, err := s.Control(ctx, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.Write(oldRequest()); err != nil {
		return false
	}
	var answer [lengthField + 32 + 3]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return false
	}
	return isOld(answer[lengthField:])
}

// oldRequest requests the single dialect NT LM 0.12.
func oldRequest() []byte {
	const dialect = "\x02NT LM 0.12\x00"
	m := make([]byte, 32, 64)
	copy(m, "\xffSMB\x72")
	m[9] = 0x18                                   // case-insensitive, canonical paths
	binary.LittleEndian.PutUint16(m[10:], 0xC843) // Unicode, NT status, extended security, long names
	m = append(m, 0)                              // no words
	m = binary.LittleEndian.AppendUint16(m, uint16(len(dialect)))
	m = append(m, dialect...)
	return append([]byte{0, 0, 0, byte(len(m))}, m...)
}

// isOld reports whether a message accepts that dialect.
func isOld(m []byte) bool {
	return len(m) >= 35 && string(m[:5]) == "\xffSMB\x72" &&
		binary.LittleEndian.Uint32(m[5:]) == 0 && m[32] > 0 && binary.LittleEndian.Uint16(m[33:]) != 0xffff
}
