package bus

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Words of a fleet that stand last in a subject.
const (
	verbBye   = "bye"   // from an operator: the client is no more; has no reply
	verbAgain = "again" // from an operator: send the events after a number again; has no reply

	wordEvent = "event" // last in the subject of an event
	wordAlive = "alive" // of the agent's sign of life to a client
	wordLeave = "leave" // of its last word to a client
	wordReply = "r"     // before the number of a reply

	headerNumber = "Thru-Number" // of an event that must not be lost, from 1 for each login
	headerLogin  = "Thru-Login"  // of a reply: differs where the agent has ended the client's sessions meanwhile

	tokenRegistry = "registry" // stands where an agent's key would
	tokenAny      = "any"      // any controller
	registryQueue = "thru-registry"
)

// Times of a fleet.
const (
	presenceEvery = 5 * time.Second
	offlineAfter  = 3 * presenceEvery
	rollSpread    = 500 * time.Millisecond // over which agents answer a roll call
)

// The subjects of a fleet. AGENT and OPERATOR are public nkeys, which the
// permissions of a connection are bound to. RUN is random for each connection of
// an operator, so that its commands are apart. A handler knows a client as
// "OPERATOR-RUN".
//
//	thru.to.AGENT.OPERATOR.RUN.VERB    operator to agent: requests
//	thru.re.OPERATOR.RUN.AGENT.>       agent to operator: replies, events, signs of life
//	thru.alive.OPERATOR.RUN            operator to all agents: keeps its leases
//	thru.here.AGENT                    agent to controllers: presence
//	thru.roll.CONTROLLER               controller to all agents: say that you are here
//	thru.registry.OPERATOR.RUN.VERB    operator to a controller
//	thru.re.OPERATOR.RUN.registry.>    controller to operator
//	thru.spool.AGENT.any|CONTROLLER    agent to a controller: results
//	thru.ack.AGENT.>                   controller to agent: results that are kept, and words about its name
func toSubject(agent string, o operatorID, verb string) string {
	if agent == tokenRegistry {
		return fmt.Sprintf("thru.registry.%s.%s", o, verb)
	}
	return fmt.Sprintf("thru.to.%s.%s.%s", agent, o, verb)
}

func reSubject(o operatorID, agent, rest string) string {
	return fmt.Sprintf("thru.re.%s.%s.%s", o, agent, rest)
}

func aliveSubject(o operatorID) string     { return "thru.alive." + o.String() }
func hereSubject(agent string) string      { return "thru.here." + agent }
func rollSubject(key string) string        { return "thru.roll." + key }
func spoolSubject(agent, to string) string { return "thru.spool." + agent + "." + to }
func ackSubject(agent, rest string) string { return "thru.ack." + agent + "." + rest }

// operatorID is a connection of an operator.
type operatorID struct{ key, run string }

// String is its two tokens in a subject.
func (o operatorID) String() string { return o.key + "." + o.run }

// client is its id as handlers know it.
func (o operatorID) client() string { return o.key + "-" + o.run }

// operatorOf reads two tokens of a subject.
func operatorOf(key, run string) (operatorID, bool) {
	return operatorID{key, run}, validKey(key) && validID(run)
}

// operatorOfClient is the inverse of client.
func operatorOfClient(client string) (operatorID, bool) {
	key, run, _ := strings.Cut(client, "-")
	return operatorOf(key, run)
}

// hasRoom tells whether one more client of a key has a place among those served, so
// many in all and of the key.
func hasRoom[L any](clients map[string]L, key string, most, ofKey int) bool {
	same := 0
	for client := range clients {
		if strings.HasPrefix(client, key+"-") {
			same++
		}
	}
	return len(clients) < most && same < ofKey
}

// tokens cuts a subject into so many, or returns nil.
func tokens(subject string, n int) []string {
	t := strings.Split(subject, ".")
	if len(t) != n {
		return nil
	}
	return t
}

// allowed is what one connection may publish and subscribe to.
type allowed struct{ publish, subscribe []string }

// agentMay is what an agent may: answer, be seen, deliver.
func agentMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.re.*.*." + key + ".>", hereSubject(key), spoolSubject(key, "*")},
		subscribe: []string{"thru.to." + key + ".>", hereSubject(key), ackSubject(key, ">"), "thru.alive.*.*", "thru.roll.*"},
	}
}

// memberMay is what an agent may at a hub. There the registry tells it of another
// process with its key: what one can send to itself many times over, and does not
// read, would wait in the hub's memory.
func memberMay(key string) allowed {
	may := agentMay(key)
	may.subscribe = slices.DeleteFunc(may.subscribe, func(s string) bool { return s == hereSubject(key) })
	return may
}

// operatorMay is what an operator may: ask all agents, and hear its own replies.
func operatorMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.to.*." + key + ".>", "thru.alive." + key + ".*", "thru.registry." + key + ".>"},
		subscribe: []string{"thru.re." + key + ".>"},
	}
}

// controllerMay is what a registry may: hear who is there, take results, answer operators.
func controllerMay(key string) allowed {
	return allowed{
		publish:   []string{"thru.re.*.*." + tokenRegistry + ".>", rollSubject(key), "thru.ack.>"},
		subscribe: []string{"thru.here.*", "thru.alive.*.*", "thru.registry.>", "thru.spool.*." + tokenAny, "thru.spool.*." + key},
	}
}
