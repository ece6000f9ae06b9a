package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// vcenterServer runs govmomi's simulator of a vCenter at the loopback port of its first argument, with its
// own certificate. Further words: esxi (a single host), empty (no VM), old (one VM has an emulated adapter
// and a limit).
func vcenterServer() {
	err := serveVCenter(os.Args[1], os.Args[2:])
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func serveVCenter(port string, words []string) error {
	log.SetOutput(io.Discard) // it logs what it does not simulate
	m := simulator.VPX()
	if slices.Contains(words, "esxi") {
		m = simulator.ESX()
	}
	if slices.Contains(words, "empty") {
		m.Machine = 0
	}
	if err := m.Create(); err != nil {
		return err
	}
	if slices.Contains(words, "old") {
		makeOld(m)
	}
	cert, err := ownCertificate()
	if err != nil {
		return err
	}
	m.Service.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	m.Service.Listen = &url.URL{Host: "127.0.0.1:" + port, User: url.UserPassword("reader@vsphere.local", "hush-7f3a")}
	m.Service.NewServer()
	fmt.Println("ready")
	select {}
}

// makeOld gives the first VM settings that the inventory reports.
func makeOld(m *simulator.Model) {
	vm := m.Map().Any("VirtualMachine").(*simulator.VirtualMachine)
	vm.Config.CpuAllocation.Limit = new(int64(500))
	for i, d := range vm.Config.Hardware.Device {
		if nic, ok := d.(types.BaseVirtualEthernetCard); ok {
			vm.Config.Hardware.Device[i] = &types.VirtualE1000{VirtualEthernetCard: *nic.GetVirtualEthernetCard()}
			return
		}
	}
}

// ownCertificate returns a new self-signed certificate.
func ownCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "vc.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
