package fb;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** The jobs q0 to q8: an auction site. Of every 50 events 1 is a new person, 3 new auctions, 46 bids. */
public final class Nex {
    private Nex() {}

    public static final class Person {
        public long id;
        public String name;
        public String email;
        public String card;
        public String city;
        public String state;
        public long ts;
        public String extra;
    }

    public static final class Auction {
        public long id;
        public String item;
        public String description;
        public long initialBid;
        public long reserve;
        public long ts;
        public long expires;
        public long seller;
        public long category;
        public String extra;
    }

    public static final class Bid {
        public long auction;
        public long bidder;
        public long price;
        public String channel;
        public String url;
        public long ts;
        public String extra;
    }

    public static final class Event {
        public Person person;
        public Auction auction;
        public Bid bid;
    }

    static final TypeInformation<Person> PERSON = Types.POJO(Person.class);
    static final TypeInformation<Auction> AUCTION = Types.POJO(Auction.class);
    static final TypeInformation<Bid> BID = Types.POJO(Bid.class);
    static final TypeInformation<Event> EVENT = Types.POJO(Event.class);

    static long ts(Event e) {
        return e.bid != null ? e.bid.ts : e.auction != null ? e.auction.ts : e.person.ts;
    }

    /** Strings come from small fixed pools, so that the generator costs little. */
    static final class Gen implements SeqSource.Gen<Event> {
        static final long BASE = 1_700_000_000_000L;
        static final long FIRST = 1000;
        static final String[] STATES = {"AZ", "CA", "ID", "OR", "WA", "WY"};
        static final String[] CHANNELS = {"Google", "Facebook", "Baidu", "Apple"};
        private final long eps;
        private transient String[][] pool;
        private transient long[] price;

        Gen(long eps) {
            this.eps = eps;
        }

        /** 256 strings of len lower-case letters. */
        static String[] strings(long seed, int len) {
            String[] s = new String[256];
            for (int i = 0; i < 256; i++) {
                StringBuilder b = new StringBuilder();
                long r = Rng.mix(seed * 256 + i);
                for (int k = 0; k < len; k++) {
                    r = Rng.mix(r);
                    b.append((char) ('a' + Rng.below(r, 26)));
                }
                s[i] = b.toString();
            }
            return s;
        }

        private void init() {
            pool = new String[][] {
                strings(1, 14), // person name
                strings(2, 20), // e-mail address
                strings(3, 19), // credit card
                strings(4, 10), // city
                strings(5, 100), // person extra
                strings(6, 20), // item name
                strings(7, 100), // description
                strings(8, 310), // auction extra
                strings(9, 30), // bid url
                strings(10, 30), // bid extra
            };
            price = new long[4096];
            for (int k = 0; k < 4096; k++) {
                price[k] = (long) Math.floor(100 * Math.pow(10, 6 * k / 4096.0));
            }
        }

        @Override
        public Event at(long i) {
            if (pool == null) {
                init();
            }
            long epoch = i / 50;
            int o = (int) (i % 50);
            long r = Rng.mix(i);
            long ts = BASE + i * 1000 / eps;
            int pick = (int) (r & 255);
            Event e = new Event();
            if (o >= 4) {
                Bid b = new Bid();
                long r2 = Rng.mix(r);
                long lastA = epoch * 3 + 2;
                long nA = Math.min(lastA + 1, 100);
                b.auction = FIRST
                        + (((r >>> 8) & 1) == 0 ? lastA / 100 * 100 : lastA - nA + 1 + Rng.below(r2, nA));
                long nP = Math.min(epoch + 1, 1000);
                b.bidder = FIRST
                        + (((r >>> 9) & 3) != 0 ? epoch / 100 * 100 + 1 : epoch - nP + 1 + Rng.below(r2 << 32, nP));
                b.price = price[(int) (r >>> 16) & 4095];
                b.channel = CHANNELS[(int) (r >>> 12) & 3];
                b.url = pool[8][pick];
                b.ts = ts;
                b.extra = pool[9][pick];
                e.bid = b;
            } else if (o >= 1) {
                Auction a = new Auction();
                long nP = Math.min(epoch + 1, 1000);
                a.id = FIRST + epoch * 3 + o - 1;
                a.item = pool[5][pick];
                a.description = pool[6][pick];
                a.initialBid = price[(int) (r >>> 16) & 4095];
                a.reserve = a.initialBid * 2;
                a.ts = ts;
                a.expires = ts + 10_000;
                a.seller = FIRST
                        + (((r >>> 9) & 3) != 0 ? epoch / 100 * 100 : epoch - nP + 1 + Rng.below(Rng.mix(r), nP));
                a.category = 10 + Rng.below(r, 5);
                a.extra = pool[7][pick];
                e.auction = a;
            } else {
                Person p = new Person();
                p.id = FIRST + epoch;
                p.name = pool[0][pick];
                p.email = pool[1][pick];
                p.card = pool[2][pick];
                p.city = pool[3][pick];
                p.state = STATES[(int) Rng.below(r, 6)];
                p.ts = ts;
                p.extra = pool[4][pick];
                e.person = p;
            }
            return e;
        }
    }

    private static SingleOutputStreamOperator<Event> events(Job j) {
        return j.from(
                new Gen(j.o.l("eps", 100_000)),
                EVENT,
                WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                        .withTimestampAssigner((e, x) -> ts(e)));
    }

    private static SingleOutputStreamOperator<Bid> bids(Job j) {
        return events(j).filter(e -> e.bid != null).map(e -> e.bid).returns(BID);
    }

    /** q0: every bid as it is. */
    static void q0(Job j) {
        bids(j).sinkTo(j.sink());
    }

    /** q1: every bid with its price times 0.908. */
    static void q1(Job j) {
        bids(j).map((MapFunction<Bid, Bid>) b -> {
                    Bid c = new Bid();
                    c.auction = b.auction;
                    c.bidder = b.bidder;
                    c.price = b.price * 908 / 1000;
                    c.channel = b.channel;
                    c.url = b.url;
                    c.ts = b.ts;
                    c.extra = b.extra;
                    return c;
                })
                .returns(BID)
                .sinkTo(j.sink());
    }

    /** q2: (auction, price) of the bids for auctions divisible by 123. */
    static void q2(Job j) {
        bids(j).filter((FilterFunction<Bid>) b -> b.auction % 123 == 0)
                .map(b -> Tuple2.of(b.auction, b.price))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .sinkTo(j.sink());
    }

    private static final TypeInformation<Tuple4<Long, String, String, String>> P4 =
            Types.TUPLE(Types.LONG, Types.STRING, Types.STRING, Types.STRING);

    static final class Q3 extends KeyedCoProcessFunction<
            Long, Tuple4<Long, String, String, String>, Tuple2<Long, Long>, Tuple4<Long, String, String, String>> {
        private transient ValueState<Tuple4<Long, String, String, String>> person;
        private transient ListState<Long> waiting;

        @Override
        public void open(OpenContext c) {
            person = getRuntimeContext().getState(new ValueStateDescriptor<>("person", P4));
            waiting = getRuntimeContext().getListState(new ListStateDescriptor<>("waiting", Types.LONG));
        }

        @Override
        public void processElement1(
                Tuple4<Long, String, String, String> p, Context c, Collector<Tuple4<Long, String, String, String>> out)
                throws Exception {
            person.update(p);
            Iterable<Long> w = waiting.get();
            if (w != null) {
                for (Long a : w) {
                    out.collect(Tuple4.of(a, p.f1, p.f2, p.f3));
                }
                waiting.clear();
            }
        }

        @Override
        public void processElement2(
                Tuple2<Long, Long> a, Context c, Collector<Tuple4<Long, String, String, String>> out) throws Exception {
            Tuple4<Long, String, String, String> p = person.value();
            if (p == null) {
                waiting.add(a.f0);
            } else {
                out.collect(Tuple4.of(a.f0, p.f1, p.f2, p.f3));
            }
        }
    }

    /** q3: (auction, name, city, state) of auctions in category 10 by sellers in OR, ID or CA; no window. */
    static void q3(Job j) {
        var e = events(j);
        var p = e.filter(x -> x.person != null
                        && (x.person.state.equals("OR") || x.person.state.equals("ID") || x.person.state.equals("CA")))
                .map(x -> Tuple4.of(x.person.id, x.person.name, x.person.city, x.person.state))
                .returns(P4);
        var a = e.filter(x -> x.auction != null && x.auction.category == 10)
                .map(x -> Tuple2.of(x.auction.id, x.auction.seller))
                .returns(Types.TUPLE(Types.LONG, Types.LONG));
        p.keyBy(x -> x.f0, Types.LONG)
                .connect(a.keyBy(x -> x.f1, Types.LONG))
                .process(new Q3(), P4)
                .sinkTo(j.sink());
    }

    static final class Count implements AggregateFunction<Long, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long v, Long a) {
            return a + 1;
        }

        @Override
        public Long getResult(Long a) {
            return a;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    private static final TypeInformation<Tuple3<Long, Long, Long>> T3 =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG);

    static final class Named extends ProcessWindowFunction<Long, Tuple3<Long, Long, Long>, Long, TimeWindow> {
        @Override
        public void process(Long auction, Context c, Iterable<Long> n, Collector<Tuple3<Long, Long, Long>> out) {
            out.collect(Tuple3.of(c.window().getEnd(), auction, n.iterator().next()));
        }
    }

    /** Keeps the auction with most bids (smallest id of equals) of a window until the watermark passes. */
    static final class Hottest
            extends KeyedProcessFunction<Long, Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
        private transient ValueState<Tuple3<Long, Long, Long>> best;

        @Override
        public void open(OpenContext c) {
            best = getRuntimeContext().getState(new ValueStateDescriptor<>("best", T3));
        }

        @Override
        public void processElement(
                Tuple3<Long, Long, Long> v, Context c, Collector<Tuple3<Long, Long, Long>> out) throws Exception {
            Tuple3<Long, Long, Long> b = best.value();
            if (b == null) {
                c.timerService().registerEventTimeTimer(v.f0);
            }
            if (b == null || v.f2 > b.f2 || (v.f2.equals(b.f2) && v.f1 < b.f1)) {
                best.update(v);
            }
        }

        @Override
        public void onTimer(long ts, OnTimerContext c, Collector<Tuple3<Long, Long, Long>> out) throws Exception {
            out.collect(best.value());
            best.clear();
        }
    }

    /** q5: (window end, auction, bids) of the auction with most bids, windows of 10 s every 2 s. */
    static void q5(Job j) {
        bids(j).map(b -> b.auction)
                .returns(Types.LONG)
                .keyBy(a -> a, Types.LONG)
                .window(SlidingEventTimeWindows.of(Duration.ofSeconds(10), Duration.ofSeconds(2)))
                .aggregate(new Count(), new Named(), Types.LONG, Types.LONG, T3)
                .keyBy(t -> t.f0, Types.LONG)
                .process(new Hottest(), T3)
                .sinkTo(j.sink());
    }

    private static final TypeInformation<Tuple4<Long, Long, Long, Long>> T4 =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG);

    /** The bid with the higher price; of equals the earlier one, then the one with the smaller bidder. */
    static final class Higher implements ReduceFunction<Tuple4<Long, Long, Long, Long>> {
        @Override
        public Tuple4<Long, Long, Long, Long> reduce(
                Tuple4<Long, Long, Long, Long> a, Tuple4<Long, Long, Long, Long> b) {
            int c = Long.compare(a.f1, b.f1);
            if (c == 0) {
                c = Long.compare(b.f3, a.f3);
            }
            if (c == 0) {
                c = Long.compare(b.f2, a.f2);
            }
            return c >= 0 ? a : b;
        }
    }

    /** q7: (auction, price, bidder, time) of the highest bid of each 10 s; by auction first, then overall. */
    static void q7(Job j) {
        bids(j).map(b -> Tuple4.of(b.auction, b.price, b.bidder, b.ts))
                .returns(T4)
                .keyBy(t -> t.f0, Types.LONG)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce(new Higher())
                .windowAll(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce(new Higher())
                .sinkTo(j.sink());
    }

    /** q8: (person, name, auction) of persons who opened an auction in the 10 s in which they joined. */
    static void q8(Job j) {
        var e = events(j);
        var p = e.filter(x -> x.person != null)
                .map(x -> Tuple2.of(x.person.id, x.person.name))
                .returns(Types.TUPLE(Types.LONG, Types.STRING));
        var a = e.filter(x -> x.auction != null)
                .map(x -> Tuple2.of(x.auction.id, x.auction.seller))
                .returns(Types.TUPLE(Types.LONG, Types.LONG));
        p.join(a)
                .where(x -> x.f0, Types.LONG)
                .equalTo(x -> x.f1, Types.LONG)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .apply(
                        (x, y) -> Tuple3.of(x.f0, x.f1, y.f0),
                        Types.TUPLE(Types.LONG, Types.STRING, Types.LONG))
                .sinkTo(j.sink());
    }
}
