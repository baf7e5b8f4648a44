# Requests of ab to apache2 with the event MPM and 8 threads: apache.sh FOLDER PORT REQUESTS [RUNNER].
# RUNNER executes both programs, such as qemu-x86_64.
folder=$1 port=$2 requests=$3 runner=$4
mkdir -p $folder/web && chmod 755 $folder && cd $folder || exit
head -c 4096 /dev/zero | tr '\0' x > web/index.html
cat > apache2.conf << END
ServerRoot $folder
ServerName localhost
Listen 127.0.0.1:$port
User www-data
Group www-data
PidFile $folder/apache2.pid
ErrorLog $folder/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
DocumentRoot $folder/web
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
END
$runner /usr/sbin/apache2 -f $folder/apache2.conf -DFOREGROUND > server.log 2>&1 &
server=$!
until (: < /dev/tcp/127.0.0.1/$port) 2> connect.log; do
	kill -0 $server || { cat server.log >&2; exit 1; }
	sleep 0.1
done
$runner /usr/bin/ab -q -n $requests -c 8 http://127.0.0.1:$port/index.html > client.log
status=$?
kill -TERM $server
wait $server
[ $status = 0 ] && grep -q '^Failed requests: *0$' client.log && grep -q "^Complete requests: *$requests\$" client.log
