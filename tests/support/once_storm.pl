#!/usr/bin/perl
# once_storm.pl - five servers whose cron fires `holdfast once --per` at the border of many slots, each a little
# early or late, while they are killed and frozen; then counts who did what.
#
#   once_storm.pl HOLDFAST URL NAME=VALUE...
#
#   keys=4         jobs at the same time, five servers each        servers=5
#   slots=5        borders                                         period=12 (s)
#   skew=83 (ms)   a server fires at most this early or late, drawn anew each time
#   slack=125 (ms) as it is given to once                          ttl=2000 (ms)
#   strikes=3      servers struck per slot and key at most, so that somebody is left
#   start=         --start-by, in s; default: the period. A server that is restarted every few seconds, and is in
#                  quarantine then, takes more of a period of 12s than of a day
#   kill=25 freeze=25 late=10 fail=10   odds, in percent: of a server to be killed, or frozen past the ttl, to fire
#                  up to a third of the period late, of a job to fail
#   seed=          default: the clock; it is printed               name=key (and a number: the keys)
#   dir=           a folder for what it needs; the effect is there, and what the servers said
#
# A server's clock against the store's is the moment at which it fires: once takes its slot from the store. The
# effect is a line that the job appends. A job whose server was struck appends no more: that is the fence's
# business, and what falls between effect and record is nobody's. So a server is not struck then either.
#
# A server that says that its success could not be put on record (exit 74: the store was away for longer than the ttl)
# says with it that the job may be done again. A few such slots are let pass, and counted.
#
# Prints one line of NAME VALUE pairs, and a line for each slot that was missed or done twice. Exit 1 then.
use strict;
use warnings;
use Fcntl ':flock';
use POSIX ':sys_wait_h';
use Time::HiRes qw(time sleep);

job() if @ARGV and $ARGV[0] eq 'job';

my ($holdfast, $url) = splice @ARGV, 0, 2;
my %o = (
    keys => 4, servers => 5, slots => 5, period => 12, skew => 83, slack => 125, ttl => 2000, strikes => 3,
    kill => 25, freeze => 25, late => 10, fail => 10, seed => int(time * 1000) % 1_000_000_007, dir => undef,
    end => 60, name => 'key', start => undef
);
for (@ARGV) {
    my ($name, $value) = split /=/, $_, 2;
    die "once_storm.pl: no such thing as $name\n" unless exists $o{$name};
    $o{$name} = $value;
}
$o{start} //= $o{period};
srand $o{seed};
my $dir = $o{dir} or die "once_storm.pl: dir= is missing\n";
mkdir $dir;

my (%running, @thaws, %struck, %count);
my (%exit, %unrecorded, @told);
$count{$_} = 0 for qw(fired kills freezes late unrecorded);

sub slot_name {
    my ($s, $m, $h, $d, $mon, $y) = gmtime $_[0];
    my $seconds = $o{period} % 60 ? sprintf ':%02d', $s : '';
    return sprintf '%04d-%02d-%02dT%02d:%02d%sZ', $y + 1900, $mon + 1, $d, $h, $m, $seconds;
}

sub locked { # does it while no job writes its effect
    my ($what) = @_;
    open my $lock, '>>', "$dir/lock" or die $!;
    flock $lock, LOCK_EX;
    my $answer = $what->();
    close $lock;
    return $answer;
}

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or return '';
    local $/;
    return <$file> // '';
}

sub spew {
    my ($path, $text) = @_;
    open my $file, '>', "$path.new" or die $!;
    print $file $text;
    close $file or die $!;
    rename "$path.new", $path;
}

sub fire {
    my ($key, $border, $server) = @_;
    my $id = "$key.$border.$server";
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$dir/words";
        open STDERR, '>&', \*STDOUT;
        $ENV{ONCE_STORM} = "$dir $id $o{fail}";
        no warnings 'exec';
        exec $holdfast, '--store', $url, 'once', '--per', "$o{period}s", '--slack', "$o{slack}ms", '--ttl',
            "$o{ttl}ms", '--grace', '100ms', '--start-by', "$o{start}s", '--retries', 50, '--label', $id, "$o{name}$key", '--', $^X, $0, 'job';
        POSIX::_exit(127);
    }
    $count{fired}++;
    $running{$pid} = {id => $id, key => $key, border => $border};
    my $die = rand 100;
    my $fault = $die < $o{kill} ? 'kill' : $die < $o{kill} + $o{freeze} ? 'freeze' : undef;
    # Most are struck while the job runs, if they have it.
    $running{$pid}{strike} = {what => $fault, at => time + rand 0.6} if $fault;
}

# Not if its effect is there: nothing in a lock store can close the gap to its record.
sub strike {
    my ($pid, $p) = @_;
    my $fault = delete $p->{strike};
    my $slot = "$p->{key}.$p->{border}";
    return if ($struck{$slot} // 0) >= $o{strikes};
    my $done = locked(sub {
        return 0 if -e "$dir/effected.$p->{id}" or not kill 0, $pid;
        spew("$dir/doomed.$p->{id}", 'all');
        kill $fault->{what} eq 'kill' ? 'KILL' : 'STOP', $pid;
        return 1;
    });
    return unless $done;
    $struck{$slot}++;
    $count{$fault->{what} . 's'}++;
    push @thaws, {at => time + $o{ttl} / 1000 + 0.4 + rand 1, pid => $pid, id => $p->{id}}
        if $fault->{what} eq 'freeze';
}

# What the job of before it was frozen would still do is void; what it begins anew is not.
sub thaw {
    my ($t) = @_;
    locked(sub { spew("$dir/doomed.$t->{id}", slurp("$dir/token.$t->{id}") || 0) });
    kill 'CONT', $t->{pid};
}

sub turn {
    while ((my $pid = waitpid -1, WNOHANG) > 0) {
        my $p = delete $running{$pid} or next;
        my $how = WIFSIGNALED($?) ? 'signal ' . WTERMSIG($?) : WEXITSTATUS($?);
        $exit{$how}++;
        $unrecorded{$p->{id}} = 1 if $how eq '74';
    }
    my $now = time;
    for my $pid (keys %running) {
        my $p = $running{$pid};
        strike($pid, $p) if $p->{strike} and $p->{strike}{at} <= $now;
    }
    my @due = grep { $_->{at} <= $now } @thaws;
    @thaws = grep { $_->{at} > $now } @thaws;
    thaw($_) for @due;
    sleep 0.005;
}

my $first = (int(time / $o{period}) + 1) * $o{period};
$first += $o{period} if $first - time < $o{skew} / 1000 + 0.5;
my @firings;
for my $n (0 .. $o{slots} - 1) {
    for my $key (1 .. $o{keys}) {
        for my $server (1 .. $o{servers}) {
            my $at = $first + $n * $o{period} + (rand(2) - 1) * $o{skew} / 1000;
            if (rand 100 < $o{late}) {
                $at += rand($o{period} / 3);
                $count{late}++;
            }
            push @firings, {at => $at, key => $key, border => $first + $n * $o{period}, server => $server};
        }
    }
}
@firings = sort { $a->{at} <=> $b->{at} } @firings;
while (@firings) {
    while (@firings and $firings[0]{at} <= time) {
        my $f = shift @firings;
        fire($f->{key}, $f->{border}, $f->{server});
    }
    turn();
}
my $until = time + $o{end};
turn() while %running and time < $until;
my $hung = keys %running;
for my $pid (keys %running) {
    kill 'KILL', $pid;
    kill 'CONT', $pid;
    waitpid $pid, 0;
}

# Whether one of them but the last was said not to be on record, and that has not happened too often.
sub done_again {
    my ($slot, @by) = @_;
    my $last = pop @by;
    return 0 unless grep { /^([^,]*),/ and $unrecorded{$1} } @by;
    return 0 if $count{unrecorded} >= 1 + int($o{keys} * $o{slots} / 10);
    $count{unrecorded}++;
    push @told, "not on record, as was said, and done again: $slot: " . join('; ', @by, $last);
    return 1;
}

my (%effects, @breaches);
for (split /\n/, slurp("$dir/effect")) {
    my ($slot, $by) = split / by /, $_, 2;
    push @{$effects{$slot}}, $by;
}
my ($once, $missed, $doubled) = (0, 0, 0);
for my $key (1 .. $o{keys}) {
    for my $n (0 .. $o{slots} - 1) {
        my $slot = slot_name($first + $n * $o{period});
        my $by = delete $effects{"$o{name}$key $slot"} // [];
        shift @$by if done_again($slot, @$by);
        my $got = @$by;
        $once++ if $got == 1;
        $missed++ if $got == 0;
        $doubled++ if $got > 1;
        push @breaches, join '; ', "$o{name}$key $slot: $got times", @$by if $got != 1;
    }
}
# A server that was put off for long, or a store whose clock was, means the slot before the first, or after the last:
# that one may be done as well, once.
my $others = keys %effects;
my %beside = map { slot_name($first + $_ * $o{period}) => 1 } -1, $o{slots};
for (sort keys %effects) {
    push @breaches, "not expected: $_" unless $beside{(split / /)[1]} and @{$effects{$_}} == 1;
    $doubled++ if @{$effects{$_}} > 1;
}
print "once $once missed $missed doubled $doubled others $others hung $hung ",
    join(' ', map {"$_ $count{$_}"} sort keys %count), " seed $o{seed}\n";
print "exits: ", join(', ', map {"$_: $exit{$_}"} sort keys %exit), "\n";
print "$_\n" for @told, @breaches;
exit(@breaches || $hung ? 1 : 0);

# What once runs.
sub job {
    my ($dir, $id, $fail) = split / /, $ENV{ONCE_STORM};
    my $token = $ENV{HOLDFAST_TOKEN};
    open my $file, '>', "$dir/token.$id.new" or die $!;
    print $file $token;
    close $file;
    rename "$dir/token.$id.new", "$dir/token.$id";
    sleep(0.05 + rand 0.4);
    exit 1 if rand 100 < $fail;
    open my $lock, '>>', "$dir/lock" or die $!;
    flock $lock, LOCK_EX;
    my $doomed = slurp("$dir/doomed.$id");
    if ($doomed eq 'all' or ($doomed ne '' and $token <= $doomed)) {
        close $lock;
        sleep 60; # until it is ended
        exit 1;
    }
    open my $effect, '>>', "$dir/effect" or die $!;
    syswrite $effect, "$ENV{HOLDFAST_NAME} $ENV{HOLDFAST_ONCE_SLOT} by $id, token $token\n";
    close $effect;
    open my $mark, '>', "$dir/effected.$id" or die $!;
    close $mark;
    close $lock;
    exit 0;
}
